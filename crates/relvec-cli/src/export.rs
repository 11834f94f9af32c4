//! `relvec export`: a model as other programs read it.

use std::path::Path;

use anyhow::{Result, anyhow};
use relvec_export::{OnnxOptions, OnnxPrecision};

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::usage;
use crate::model_file;
use crate::output;
use crate::text::significant;

/// Endings of files and the formats that they stand for.
const ENDINGS: [(&str, ExportFormat); 1] = [("onnx", ExportFormat::Onnx)];

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    let format = format(args)?;
    let precision = precision(args, format)?;
    output::apart("--output", Some(&args.output), &[&args.model])?;
    let model = model_file::read(&args.model)?;
    let name = args.model.display();
    let bytes = match precision {
        Precision::Onnx(precision) => relvec_export::to_onnx(&model, &OnnxOptions { precision, std: !args.no_std }),
    };
    let bytes = bytes.map_err(|e| anyhow!("model `{name}`: {e}"))?;
    output::write(&args.output, &bytes)?;
    say!("Saved {} ({} kB)", args.output.display(), significant(bytes.len() as f64 / 1000.0, 3));
    Ok(())
}

/// The precision by its format.
enum Precision {
    Onnx(OnnxPrecision),
}

/// The format that was named, or that of the ending.
fn format(args: &ExportArgs) -> Result<ExportFormat> {
    let ending = |path: &Path| path.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    let known = |ending: String| ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format);
    let by_ending = || ending(&args.output).and_then(known);
    args.format.or_else(by_ending).ok_or_else(|| {
        let endings: Vec<String> = ENDINGS.iter().map(|(ending, _)| format!(".{ending}")).collect();
        usage(format!("--output {}: expected the ending {}, or --format", args.output.display(), endings.join(" or ")))
    })
}

fn precision(args: &ExportArgs, format: ExportFormat) -> Result<Precision> {
    let name = args.precision.as_deref();
    let refuse = |known: &[&str]| {
        let found = name.unwrap_or_default();
        usage(format!("--precision {found}: expected {} for this format", known.join(", ")))
    };
    match format {
        ExportFormat::Onnx => {
            let precision = name.map_or(Some(OnnxPrecision::default()), OnnxPrecision::from_name);
            precision.map(Precision::Onnx).ok_or_else(|| refuse(&OnnxPrecision::NAMES))
        }
    }
}
