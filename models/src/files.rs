//! Writing of files and folders that are either complete or absent, and the tensors in them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bufgym_util::files::{is_folder, parent, remove, sync_folder};
use bufgym_util::input;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use sha2::{Digest, Sha256};

use crate::parameters::NamedTensor;

/// SHA-256 as lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Same as [`sha256`], for a file of at most `limit` bytes, which is not loaded into memory.
///
/// # Errors
/// Returns errors of the file system, and refuses a longer file.
pub fn sha256_of_file(path: &Path, limit: u64) -> io::Result<String> {
    struct Hash(Sha256);
    impl Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(Sha256::new());
    input::copy(path, &mut hash, limit)?;
    Ok(hexadecimal(&hash.0.finalize()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tensors in safetensors form, little-endian `f32`.
///
/// # Errors
/// When two tensors have the same name or a shape does not fit its values.
pub fn encode_tensors(tensors: &[NamedTensor]) -> Result<Vec<u8>, SafeTensorError> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| {
            tensor
                .values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<Result<Vec<_>, SafeTensorError>>()?;
    safetensors::serialize(views, None)
}

/// Returns the tensors of a safetensors file. Tensors of another type than `f32` are left out.
///
/// # Errors
/// When the bytes are not a safetensors file.
pub fn decode_tensors(bytes: &[u8]) -> Result<Vec<NamedTensor>, SafeTensorError> {
    let file = SafeTensors::deserialize(bytes)?;
    let mut tensors: Vec<NamedTensor> = file
        .iter()
        .filter(|(_, view)| view.dtype() == Dtype::F32)
        .map(|(name, view)| NamedTensor {
            name: name.to_owned(),
            shape: view.shape().to_vec(),
            values: view
                .data()
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect(),
        })
        .collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

/// Replaces the folder `dir` by the content that `write` puts into an empty one.
///
/// The new folder is written next to the old one and then replaces it. So at any moment, also
/// after a crash, [`current_folder`] holds the complete old or the complete new content. A missing parent is created, but
/// none above it: a folder that was moved away is not made again. There must be only one writer at a time.
///
/// # Errors
/// Returns errors of `write` and of the file system. `dir` is then unchanged.
pub fn replace_folder<E: From<io::Error>>(
    dir: &Path,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    recover_folder(dir)?;
    let parent = parent(dir);
    match fs::create_dir(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let (new, old) = (sibling(dir, "new"), sibling(dir, "old"));
    remove(&new)?;
    fs::create_dir(&new)?;
    let written = write(&new).and_then(|()| Ok(sync_folder(&new)?));
    if let Err(error) = written {
        // The first error is returned, even if the new folder cannot be removed.
        let _ = fs::remove_dir_all(&new);
        return Err(error);
    }
    if is_there(dir) {
        fs::rename(dir, &old)?;
    }
    fs::rename(&new, dir)?;
    sync_folder(parent)?;
    remove(&old)?;
    Ok(())
}

/// Returns the folder with the current content of `dir`. That is `dir` itself, or the old folder next to it if a
/// [`replace_folder`] was killed between its two renames. Changes nothing, so a reader does not disturb a writer.
pub fn current_folder(dir: &Path) -> PathBuf {
    let old = sibling(dir, "old");
    // A link next to a folder is not left by `replace_folder`.
    if is_folder(&old) && !is_there(dir) {
        old
    } else {
        dir.to_owned()
    }
}

/// Completes a [`replace_folder`] that was killed: restores the old folder if the new one had not replaced it yet. Does
/// nothing otherwise.
pub fn recover_folder(dir: &Path) -> io::Result<()> {
    let old = sibling(dir, "old");
    if is_folder(&old) && !is_there(dir) {
        return fs::rename(&old, dir);
    }
    remove(&old)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns `a/.b.suffix` for `a/b`.
fn sibling(dir: &Path, suffix: &str) -> PathBuf {
    let name = dir
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    parent(dir).join(format!(".{name}.{suffix}"))
}

#[cfg(test)]
mod tests {
    use bufgym_util::files::write_new;

    use super::*;

    fn content(dir: &Path) -> String {
        fs::read_to_string(dir.join("file")).unwrap()
    }

    fn write(dir: &Path, text: &str) -> io::Result<()> {
        replace_folder(dir, |new| write_new(&new.join("file"), text.as_bytes()))
    }

    #[test]
    fn a_folder_is_replaced_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("deep/state");
        write(&dir, "one").unwrap();
        write(&dir, "two").unwrap();
        assert_eq!(content(&dir), "two");
        assert_eq!(fs::read_dir(dir.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_was_moved_away_is_not_made_again() {
        let root = tempfile::tempdir().unwrap();
        let moved = root.path().join("run");
        let error = write(&moved.join("checkpoints/state"), "one").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!moved.exists());
    }

    #[test]
    fn a_failed_write_leaves_the_old_folder() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("state");
        write(&dir, "one").unwrap();
        let failed: io::Result<()> = replace_folder(&dir, |_| Err(io::Error::other("full")));
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(content(&dir), "one");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_kill_between_the_two_renames_is_repaired() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("state");
        write(&dir, "one").unwrap();
        fs::rename(&dir, root.path().join(".state.old")).unwrap();
        assert_eq!(content(&current_folder(&dir)), "one");
        recover_folder(&dir).unwrap();
        assert_eq!(current_folder(&dir), dir);
        assert_eq!(content(&dir), "one");
    }

    #[cfg(unix)]
    #[test]
    fn links_beside_a_folder_are_removed_and_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let precious = root.path().join("precious");
        write(&precious, "precious").unwrap();
        let dir = root.path().join("state");
        let link = || {
            for name in [".state.new", ".state.old"] {
                std::os::unix::fs::symlink(&precious, root.path().join(name)).unwrap();
            }
        };
        link();
        assert_eq!(current_folder(&dir), dir);
        write(&dir, "one").unwrap();
        link();
        write(&dir, "two").unwrap();
        assert_eq!(
            (content(&dir), content(&precious)),
            ("two".into(), "precious".into())
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_kill_after_the_second_rename_keeps_the_new_folder() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("state");
        write(&dir, "one").unwrap();
        fs::create_dir(root.path().join(".state.old")).unwrap();
        recover_folder(&dir).unwrap();
        assert_eq!(content(&dir), "one");
        assert!(!root.path().join(".state.old").exists());
    }
}
