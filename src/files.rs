//! Files in the folder of what is kept from one process to the next.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, process};

/// Writes a file under a name of its own and gives it the right one then: nobody ever reads half of it.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(format!("{}-{}.tmp", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let folder = std::env::temp_dir().join(format!("lapidary-files-{}", process::id()));
        let file = folder.join("below").join("file.bin");
        for bytes in [b"first".as_slice(), b"second"] {
            replace(&file, bytes).unwrap();
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        assert!(replace(&file.join("a file is no folder"), b"x").is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
