//! `relvec export`: a model as other programs read it.

use anyhow::{Result, anyhow};
use relvec_export::{COptions, CPrecision, OnnxOptions, OnnxPrecision};

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::usage;
use crate::model_file;
use crate::output;
use crate::text::significant;

/// How the model is written, by the format.
enum Options {
    Onnx(OnnxOptions),
    C(COptions),
}

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    let options = options(args)?;
    output::apart("--output", Some(&args.output), &[&args.model])?;
    let model = model_file::read(&args.model)?;
    let written = match options {
        Options::Onnx(options) => relvec_export::to_onnx(&model, &options),
        Options::C(options) => relvec_export::to_c(&model, &options).map(String::into_bytes),
    };
    let bytes = written.map_err(|e| match e {
        relvec_export::Error::Name { .. } => usage(e.to_string().replacen("C: name =", "--name", 1)),
        e => anyhow!("model `{}`: {e}", args.model.display()),
    })?;
    output::write(&args.output, &bytes)?;
    say!("Saved {} ({} kB)", args.output.display(), significant(bytes.len() as f64 / 1000.0, 3));
    Ok(())
}

/// The format that was named, or that of the ending.
fn format(args: &ExportArgs) -> Result<ExportFormat> {
    let ending = args.output.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    match (args.format, ending.as_deref()) {
        (Some(format), _) => Ok(format),
        (None, Some("onnx")) => Ok(ExportFormat::Onnx),
        (None, Some("h")) => Ok(ExportFormat::C),
        _ => Err(usage(format!("--output {}: expected the ending .onnx or .h, or --format", args.output.display()))),
    }
}

fn options(args: &ExportArgs) -> Result<Options> {
    let (format, std) = (format(args)?, !args.no_std);
    let refuse = |known: &[&str]| {
        let found = args.precision.as_deref().unwrap_or_default();
        usage(format!("--precision {found}: expected {} for this format", known.join(", ")))
    };
    match format {
        ExportFormat::Onnx if args.name.is_some() => Err(usage("--name is for C headers: leave it out, or take --format c")),
        ExportFormat::Onnx => {
            let precision = args.precision.as_deref().map_or(Some(OnnxPrecision::default()), OnnxPrecision::from_name);
            let precision = precision.ok_or_else(|| refuse(&OnnxPrecision::NAMES))?;
            Ok(Options::Onnx(OnnxOptions { precision, std }))
        }
        ExportFormat::C => {
            let precision = args.precision.as_deref().map_or(Some(CPrecision::default()), CPrecision::from_name);
            let precision = precision.ok_or_else(|| refuse(&CPrecision::NAMES))?;
            let name = args.name.clone().unwrap_or(COptions::default().name);
            Ok(Options::C(COptions { name, precision, std }))
        }
    }
}
