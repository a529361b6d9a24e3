//! What a cache folder holds, for whoever wants to look at it or to make room.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::store::{self, CONTENT};

/// The modules below a cache folder.
#[derive(Debug)]
pub struct CachedFiles(PathBuf);

/// A module on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedFile {
    /// The file's name: the SHA-256 of the module.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was used last.
    pub used: SystemTime,
}

impl CachedFiles {
    /// Those below `dir`, the folder of [`FetchOptions::cache_dir`](crate::FetchOptions::cache_dir); `None` where
    /// nothing was ever kept there. Nothing is created.
    pub fn open(dir: &Path) -> io::Result<Option<Self>> {
        let folder = dir.join(CONTENT);
        Ok(folder.try_exists()?.then_some(Self(folder)))
    }

    /// All of them, the least recently used first.
    pub fn list(&self) -> io::Result<Vec<CachedFile>> {
        let files = store::files(&self.0)?.into_iter();
        Ok(files
            .filter_map(|file| {
                Some(CachedFile {
                    name: file.path.file_name()?.to_str()?.to_owned(),
                    bytes: file.size,
                    used: file.used,
                })
            })
            .collect())
    }

    /// Removes one of those that were listed; false if it was gone already. Who has it in memory keeps it; who wants it
    /// next fetches it anew.
    pub fn remove(&self, file: &CachedFile) -> io::Result<bool> {
        store::take_away(&self.0.join(&file.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Content;
    use crate::http::Validators;
    use crate::store::Store;

    #[test]
    fn modules_are_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            CachedFiles::open(&dir.path().join("none"))
                .unwrap()
                .is_none()
        );
        assert!(!dir.path().join("none").exists());
        let store = Store::open(dir.path(), 1000).unwrap();
        let contents = [b"one".to_vec(), b"second".to_vec()].map(Content::digest);
        for content in &contents {
            store
                .put("http://h/m", content, &Validators::default())
                .unwrap();
        }
        let files = CachedFiles::open(dir.path()).unwrap().unwrap();
        let listed = files.list().unwrap();
        let mut sizes: Vec<(&str, u64)> = listed
            .iter()
            .map(|file| (file.name.as_str(), file.bytes))
            .collect();
        sizes.sort_by_key(|(_, bytes)| *bytes);
        let [one, second] = contents
            .each_ref()
            .map(|content| content.digests.sha256.as_str());
        assert_eq!(sizes, [(one, 3), (second, 6)]);
        let first = listed.iter().find(|file| file.name == one).unwrap();
        assert!(files.remove(first).unwrap());
        assert!(!files.remove(first).unwrap(), "it is gone");
        std::fs::create_dir(dir.path().join("modules/content/folder")).unwrap();
        let folder = CachedFile {
            name: "folder".to_owned(),
            ..first.clone()
        };
        assert!(files.remove(&folder).is_err());
        std::fs::remove_dir(dir.path().join("modules/content/folder")).unwrap();
        assert_eq!(files.list().unwrap().len(), 1);
        assert!(store.content(one, 1000).is_none() && store.content(second, 1000).is_some());
    }
}
