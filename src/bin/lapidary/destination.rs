//! Files that commands write: told at once where they cannot be, and there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where a file is to be.
pub struct Destination {
    /// As it was asked for.
    pub path: PathBuf,
    /// The file that is replaced, behind all links. None for what is written as it stands: a pipe, a terminal.
    replaced: Option<PathBuf>,
}

impl Destination {
    /// Looks whether it can be written, so that nothing is computed in vain. Nothing is left there: a run may be ended before it writes.
    pub fn new(path: &Path) -> Result<Self, Failure> {
        let replaced = replaceable(path).map_err(|error| Failure::file(path, error))?;
        Ok(Self { path: path.to_owned(), replaced })
    }

    /// Writes it. What was there stays until all is written.
    pub fn write(&self, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Failure> {
        let written = match &self.replaced {
            Some(file) => replace(file, content),
            None => File::create(&self.path).and_then(|file| filled(file, content)).map(drop),
        };
        written.map_err(|error| Failure::file(&self.path, error))
    }
}

/// The file behind a path if another can take its place.
fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    let there = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return Ok(None),
        Ok(there) => Some(there),
        Err(error) if error.kind() == ErrorKind::NotFound && names_a_file(path) => None,
        Err(error) => return Err(error),
    };
    if there.is_some() {
        // One that is not to be written is not to be replaced either.
        OpenOptions::new().write(true).open(path)?;
    }
    let mut file = path.to_owned();
    while let Ok(target) = fs::read_link(&file) {
        // What these lead to somebody holds open, as a shell does the file that stdout goes to.
        if ["/dev", "/proc"].iter().any(|folder| file.starts_with(folder)) {
            return Ok(None);
        }
        file = folder(&file).join(target);
    }
    match Draft::new(&file) {
        Ok(_) => Ok(Some(file)),
        // It can be written though its folder cannot.
        Err(_) if there.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it does not end as a folder's does, in a separator or dots.
fn names_a_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()))
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// A file beside another, which goes when it is done with.
struct Draft {
    path: PathBuf,
    file: File,
}

impl Draft {
    fn new(beside: &Path) -> io::Result<Self> {
        let mut count = 0;
        loop {
            // A short name of its own: one made of the file's may be too long.
            let path = folder(beside).join(format!(".lapidary-{}-{count}", std::process::id()));
            match File::create_new(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => count += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there if it has taken the other's place.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a file beside another, and puts it in its place.
fn replace(path: &Path, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let draft = Draft::new(path)?;
    if let Ok(there) = fs::metadata(path)
        && there.permissions() != draft.file.metadata()?.permissions()
    {
        // Before anything is in it that others may not read.
        draft.file.set_permissions(there.permissions())?;
    }
    // Some disks tell only then that they are full.
    filled(draft.file.try_clone()?, content)?.sync_all()?;
    // Not every file can be replaced, e.g. one that is mounted by itself, or one of somebody else's in a shared folder.
    fs::rename(&draft.path, path).or_else(|_| io::copy(&mut File::open(&draft.path)?, &mut File::create(path)?).map(drop))
}

/// The file with all of its content.
fn filled(file: File, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.into_inner().map_err(|error| error.into_error())
}
