//! `relvec export` and `relvec import`: models for and from other programs.

use std::fs;

use anyhow::{Context, Result, anyhow};
use relvec_export::{COptions, CPrecision, OnnxOptions, OnnxPrecision};

use crate::args::{ExportArgs, ExportFormat, ImportArgs};
use crate::failure::usage;
use crate::model_file;
use crate::output;
use crate::text::{count, significant};

/// Options of each format.
enum Options {
    Onnx(OnnxOptions),
    C(COptions),
    Libsvm,
}

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    let options = options(args)?;
    output::apart("--output", Some(&args.output), &[&args.model])?;
    let model = model_file::read(&args.model)?;
    let written = match options {
        Options::Onnx(options) => relvec_export::to_onnx(&model, &options),
        Options::C(options) => relvec_export::to_c(&model, &options).map(String::into_bytes),
        Options::Libsvm => relvec_export::to_libsvm(&model).map(String::into_bytes),
    };
    let bytes = written.map_err(|e| match e {
        relvec_export::Error::Name { .. } => usage(e.to_string().replacen("C: name =", "--name", 1)),
        e => anyhow!("model `{}`: {}", args.model.display(), as_typed(&e.to_string())),
    })?;
    let test = match format(args)? {
        ExportFormat::Libsvm => Some(relvec_export::libsvm_self_test(&model)?),
        _ => None,
    };
    output::write(&args.output, &bytes)?;
    say!("Saved {} ({} kB)", args.output.display(), significant(bytes.len() as f64 / 1000.0, 3));
    if let Some(test) = test {
        let mut beside = args.output.clone().into_os_string();
        beside.push(".test");
        output::write(beside.as_ref(), test.as_bytes())?;
        say!("Saved {} (ten rows with their predictions)", beside.display());
    }
    Ok(())
}

/// Replaces parameters in a message of the library by the options as they are typed.
fn as_typed(message: &str) -> String {
    let options = [
        ("precision = ", "--precision "),
        ("weight_prior = ", "--weight-prior "),
        ("variance = ", "--variance "),
        ("multi_class = ", "--multi-class "),
        ("standardize = false", "--no-standardize"),
    ];
    options.iter().fold(message.to_string(), |text, (name, option)| text.replace(name, option))
}

pub(crate) fn import(args: &ImportArgs) -> Result<()> {
    let name = args.file.display();
    output::apart("--output", Some(&args.output), &[&args.file])?;
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read `{name}`"))?;
    let model = relvec_export::from_libsvm(&text, args.features).map_err(|e| anyhow!("`{name}`: {e}"))?;
    output::write(&args.output, model.to_json()?.as_bytes())?;
    let vectors = count(model.relevance.len(), "support vector");
    say!("Saved {} ({vectors}, {})", args.output.display(), count(model.n_features, "feature"));
    Ok(())
}

/// Returns the format that --format names, or else the format of the file's ending.
fn format(args: &ExportArgs) -> Result<ExportFormat> {
    let ending = args.output.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    match (args.format, ending.as_deref()) {
        (Some(format), _) => Ok(format),
        (None, Some("onnx")) => Ok(ExportFormat::Onnx),
        (None, Some("h")) => Ok(ExportFormat::C),
        (None, Some("libsvm")) => Ok(ExportFormat::Libsvm),
        _ => Err(usage(format!("--output {}: expected the ending .onnx, .h or .libsvm, or --format", args.output.display()))),
    }
}

fn options(args: &ExportArgs) -> Result<Options> {
    let (format, std) = (format(args)?, !args.no_std);
    let refuse = |known: &[&str]| {
        let found = args.precision.as_deref().unwrap_or_default();
        usage(format!("--precision {found}: expected {} for this format", known.join(", ")))
    };
    match format {
        ExportFormat::Libsvm => match (&args.precision, &args.name) {
            (None, None) => Ok(Options::Libsvm),
            _ => Err(usage("--precision and --name are for ONNX and C: leave them out, or use --format onnx or c")),
        },
        ExportFormat::Onnx if args.name.is_some() => Err(usage("--name is for C headers: leave it out, or use --format c")),
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
