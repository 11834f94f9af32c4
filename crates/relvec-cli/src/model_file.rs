//! Reads a model file, with errors that contain its name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use relvec::Model;

/// Reads and checks the model file at `path`.
pub(crate) fn read(path: &Path) -> Result<Model> {
    let name = path.display();
    if path.is_dir() {
        return Err(anyhow!("`{name}` is a folder, not a model file"));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read the model `{name}`"))?;
    if bytes.is_empty() {
        return Err(anyhow!("model `{name}`: the file is empty"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| anyhow!("model `{name}`: this is not a model file: byte {} is not text", e.utf8_error().valid_up_to()))?;
    Model::from_json(&text).map_err(|e| match e {
        relvec::Error::ModelFile(problem) => anyhow!("model `{name}`: {problem}"),
        other => anyhow!("model `{name}`: {other}"),
    })
}
