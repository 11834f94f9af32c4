//! Data out. Files are written whole or not at all: under a temporary name in the same folder, then
//! renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempPath;

use crate::failure::usage;

/// A file that appears under its name only when [`Output::finish`] is called.
pub(crate) struct Output {
    path: PathBuf,
    /// The path as it was given, for messages.
    name: PathBuf,
    sink: Sink,
}

enum Sink {
    /// Removed on drop unless finished. Not the file of the crate: its errors name a path that the user never gave.
    Temporary(BufWriter<File>, TempPath),
    /// A device or a pipe, such as /dev/null, which must not be replaced by a file.
    Direct(BufWriter<File>),
}

impl Output {
    /// Opens a file for `path`; fails now rather than after the work if it cannot be written.
    pub fn create(path: &Path) -> Result<Output> {
        let sink = Output::sink(path).with_context(|| cannot_write(path))?;
        // A link is followed, so that the file it names is replaced and not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Output { path: target, name: path.to_path_buf(), sink })
    }

    fn sink(path: &Path) -> Result<Sink> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => bail!("it is a folder"),
            Ok(found) if !found.is_file() => {
                return Ok(Sink::Direct(BufWriter::new(File::options().write(true).open(path)?)));
            }
            Ok(found) if found.permissions().readonly() => bail!("the file is read-only"),
            _ => {}
        }
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if target.file_name().is_none() {
            bail!("this is no file name");
        }
        if !folder.is_dir() {
            bail!("there is no folder `{}`", folder.display());
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".relvec-").suffix(".part");
        #[cfg(unix)]
        {
            // As any new file: the user's umask decides, not the privacy of temporary files.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        // Not the error of the crate, again.
        let (file, place) = builder.tempfile_in(folder).map_err(|e| io::Error::from(e.kind()))?.into_parts();
        Ok(Sink::Temporary(BufWriter::new(file), place))
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<()> {
        let context = || cannot_write(&self.name);
        match self.sink {
            Sink::Direct(mut file) => file.flush().with_context(context),
            Sink::Temporary(buffer, place) => {
                let file = buffer.into_inner().map_err(|e| e.into_error()).with_context(context)?;
                // A disk that is full may say so only now; until then the old file stays.
                file.sync_all().with_context(context)?;
                drop(file);
                place.persist(&self.path).map_err(|e| e.error).with_context(context)?;
                Ok(())
            }
        }
    }
}

impl Output {
    fn buffer(&mut self) -> &mut BufWriter<File> {
        match &mut self.sink {
            Sink::Temporary(file, _) | Sink::Direct(file) => file,
        }
    }

    /// An error that names the file; its kind stays, by which a closed pipe is told.
    fn named(&self, e: io::Error) -> io::Error {
        io::Error::new(e.kind(), format!("{}: {e}", cannot_write(&self.name)))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer().write(bytes).map_err(|e| self.named(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.buffer().flush().map_err(|e| self.named(e))
    }
}

fn cannot_write(name: &Path) -> String {
    format!("cannot write `{}`", name.display())
}

/// Fails, before any work, if the file `path` that `flag` names is one of `inputs`, which it would overwrite.
pub(crate) fn apart(flag: &str, path: Option<&Path>, inputs: &[&Path]) -> Result<()> {
    // What is not there yet is no input; a device is not overwritten.
    let Some((path, own)) = path.and_then(|path| Some((path, fs::canonicalize(path).ok()?))) else { return Ok(()) };
    let same = |input: &&&Path| own.is_file() && fs::canonicalize(input).is_ok_and(|input| input == own);
    match inputs.iter().find(same) {
        Some(input) => {
            let (path, input) = (path.display(), input.display());
            Err(usage(format!("{flag} {path}: this is the file `{input}` that is read, and would be overwritten; name another")))
        }
        None => Ok(()),
    }
}

/// Fails if `path` cannot be written; leaves nothing behind.
pub(crate) fn check(path: &Path) -> Result<()> {
    Output::create(path).map(drop)
}

/// Writes `bytes` as the file `path`.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(path)?;
    output.write_all(bytes)?;
    output.finish()
}

/// Prints data on stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write to stdout")
}
