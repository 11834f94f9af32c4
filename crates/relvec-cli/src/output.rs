//! Output of data. A file is written completely or not at all: without a name or under a temporary name in the same
//! folder, and renamed at the end.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::{Builder, TempPath};

use crate::failure::usage;

/// Most links that are followed, the limit of Linux.
const MOST_LINKS: usize = 40;

/// A file that appears under its name only when [`Output::finish`] is called.
pub(crate) struct Output {
    /// The path as it was given, for messages.
    name: PathBuf,
    sink: Sink,
}

enum Sink {
    Replacement(Box<Replacement>),
    /// A device or a pipe, such as /dev/null, which a file must not replace.
    Direct(BufWriter<File>),
}

/// Kind of file that an output path refers to.
enum Destination {
    /// A device, a pipe, or a file that the process has already open.
    Direct(PathBuf),
    /// A file in an existing folder; `old` describes the file if it exists.
    File { path: PathBuf, folder: PathBuf, old: Option<Metadata> },
}

/// A new file before it gets its name.
struct Replacement {
    path: PathBuf,
    folder: PathBuf,
    old: Option<Metadata>,
    buffer: BufWriter<File>,
    /// Temporary name, removed on drop unless renamed. On Linux there is usually none: a file without a name disappears
    /// however the program ends.
    place: Option<TempPath>,
}

impl Destination {
    /// Follows links, also a link to a file that does not exist yet. The file is replaced, never the link.
    fn of(path: &Path) -> io::Result<Destination> {
        let refuse = |kind: ErrorKind, why: &str| Err(io::Error::new(kind, why.to_string()));
        let old = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return refuse(ErrorKind::IsADirectory, "it is a folder"),
            Ok(found) if !found.is_file() => return Ok(Destination::Direct(path.to_path_buf())),
            Ok(found) if found.permissions().readonly() => return refuse(ErrorKind::PermissionDenied, "the file is read-only"),
            Ok(found) => {
                // Write permission for the folder would allow replacing a file that may not be written, so the file is
                // opened for writing.
                File::options().append(true).open(path)?;
                Some(found)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let mut path = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            let Ok(link) = fs::read_link(&path) else { break };
            path = path.parent().unwrap_or(Path::new("")).join(link);
            if path.starts_with("/proc") || path.starts_with("/dev/fd") {
                return Ok(Destination::Direct(path));
            }
        }
        if path.file_name().is_none() {
            return refuse(ErrorKind::InvalidInput, "this is not a file name");
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            return refuse(ErrorKind::NotFound, &format!("there is no folder `{}`", folder.display()));
        }
        Ok(Destination::File { path, folder, old })
    }

    fn open(self) -> io::Result<Sink> {
        match self {
            Destination::Direct(path) => Ok(Sink::Direct(BufWriter::new(File::options().append(true).open(path)?))),
            Destination::File { path, folder, old } => {
                let (file, place) = match unnamed(&folder) {
                    Some(file) => (file, None),
                    None => named(&folder).map(|(file, place)| (file, Some(place)))?,
                };
                Ok(Sink::Replacement(Box::new(Replacement { path, folder, old, buffer: BufWriter::new(file), place })))
            }
        }
    }
}

/// Creates a file without a name in the folder, if the system supports it. The user's umask sets its permissions.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<File> {
    None
}

/// Gives a name to a file without one, if the file system supports it.
#[cfg(target_os = "linux")]
fn link(file: &File, place: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, CWD, place, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _place: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".relvec-").suffix(".part");
    builder
}

/// Creates a file with a temporary name in the folder.
fn named(folder: &Path) -> io::Result<(File, TempPath)> {
    let mut builder = builder();
    #[cfg(unix)]
    {
        // The user's umask sets the permissions, not the private mode of temporary files.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666));
    }
    // The error of the crate contains a path that the user did not give, so only its kind is used.
    Ok(builder.tempfile_in(folder).map_err(|e| io::Error::from(e.kind()))?.into_parts())
}

/// Copies the permissions of the file that is replaced, and its owner if the system allows it.
fn dress(file: &File, old: Option<&Metadata>) -> io::Result<()> {
    let Some(old) = old else { return Ok(()) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    let permissions: Permissions = old.permissions();
    file.set_permissions(permissions)
}

impl Replacement {
    fn finish(self) -> io::Result<()> {
        let mut file = self.buffer.into_inner().map_err(|e| e.into_error())?;
        let place = match self.place {
            Some(place) => place,
            None => {
                // The data are on the disk before the file gets its name.
                dress(&file, self.old.as_ref())?;
                file.sync_all()?;
                match builder().make_in(&self.folder, |place| link(&file, place)) {
                    Ok(linked) => linked.into_temp_path(),
                    Err(_) => {
                        let (mut copy, place) = named(&self.folder)?;
                        io::Seek::rewind(&mut file)?;
                        io::copy(&mut file, &mut copy)?;
                        file = copy;
                        place
                    }
                }
            }
        };
        dress(&file, self.old.as_ref())?;
        // A full disk may be reported only here. Until then the old file is unchanged.
        file.sync_all()?;
        drop(file);
        place.persist(&self.path).map_err(|e| e.error)
    }
}

impl Output {
    /// Opens a file for `path`. It fails now, and not after the work, if the file cannot be written.
    pub fn create(path: &Path) -> Result<Output> {
        let sink = Destination::of(path).and_then(Destination::open).with_context(|| cannot_write(path))?;
        Ok(Output { name: path.to_path_buf(), sink })
    }

    /// Completes the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        let done = match self.sink {
            Sink::Direct(mut file) => file.flush(),
            Sink::Replacement(replacement) => replacement.finish(),
        };
        done.with_context(|| cannot_write(&self.name))
    }

    fn buffer(&mut self) -> &mut BufWriter<File> {
        match &mut self.sink {
            Sink::Replacement(replacement) => &mut replacement.buffer,
            Sink::Direct(file) => file,
        }
    }

    /// Returns the error with the name of the file. The kind is kept, since it identifies a closed pipe.
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

/// Returns an error if the file `path` of the option `flag` is one of `inputs`, which would be overwritten.
pub(crate) fn apart(flag: &str, path: Option<&Path>, inputs: &[&Path]) -> Result<()> {
    // A file that does not exist yet is not an input, and a device is not overwritten.
    let Some((path, own)) = path.and_then(|path| Some((path, fs::canonicalize(path).ok()?))) else { return Ok(()) };
    let same = |input: &&&Path| own.is_file() && fs::canonicalize(input).is_ok_and(|input| input == own);
    match inputs.iter().find(same) {
        Some(input) => {
            let (path, input) = (path.display(), input.display());
            Err(usage(format!("{flag} {path}: the file `{input}` is read and would be overwritten; name another")))
        }
        None => Ok(()),
    }
}

/// Returns an error if `path` cannot be written. No file remains, and a pipe is not opened, since its reader would see
/// its end.
pub(crate) fn check(path: &Path) -> Result<()> {
    let tried = Destination::of(path).and_then(|destination| match destination {
        #[cfg(unix)]
        Destination::Direct(path) => Ok(rustix::fs::access(&path, rustix::fs::Access::WRITE_OK)?),
        other => other.open().map(drop),
    });
    tried.with_context(|| cannot_write(path))
}

/// Writes `bytes` to the file `path`.
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
