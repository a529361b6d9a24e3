//! The signatures that have proven artifacts, on disk: they count while the registry that has them is away.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use super::{Store, keep_newest, remove, touch, write};
use crate::cosign::MAX_PAYLOAD_BYTES;
use crate::oci::CosignSignature;
use crate::verify::sha256_hex;

/// How many signatures are kept: 1,024, of some 500 bytes each. Those used longest ago go first.
const MAX_KEPT: usize = 1024;

/// The largest file that is read: that of the largest payload, each byte of it escaped, and 8 KiB for the signature.
const MAX_FILE: u64 = 6 * MAX_PAYLOAD_BYTES as u64 + (8 << 10);

/// A signature as it is written down.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    payload: String,
    signature: String,
}

impl Store {
    /// The signature that has proven the artifact whose manifest has this digest. Nothing is said of what it proves now.
    pub(crate) fn signature(&self, digest: &str) -> Option<CosignSignature> {
        let path = self.signature_path(digest);
        let file = File::open(&path).ok()?;
        let mut text = Vec::new();
        (&file).take(MAX_FILE).read_to_end(&mut text).ok()?;
        let Ok(Kept { payload, signature }) = serde_json::from_slice(&text) else {
            remove(&path);
            return None;
        };
        touch(&file);
        Some(CosignSignature {
            payload: payload.into_bytes(),
            signature,
        })
    }

    /// Keeps what has proven an artifact.
    pub(crate) fn put_signature(&self, digest: &str, one: &CosignSignature) -> io::Result<()> {
        let kept = Kept {
            payload: String::from_utf8_lossy(&one.payload).into_owned(),
            signature: one.signature.clone(),
        };
        let text = serde_json::to_vec(&kept)?;
        write(&self.signatures, &self.signature_path(digest), &text)?;
        keep_newest(&self.signatures, MAX_KEPT)
    }

    fn signature_path(&self, digest: &str) -> PathBuf {
        self.signatures.join(sha256_hex(digest.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_again_unless_it_is_torn() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1000).unwrap();
        let one = CosignSignature {
            payload: b"{ \"a\": \"\xc3\xa4\n\" }".to_vec(),
            signature: "MEUC".to_owned(),
        };
        assert_eq!(store.signature("sha256:aa"), None);
        store.put_signature("sha256:aa", &one).unwrap();
        let again = Store::open(dir.path(), 1000).unwrap();
        assert_eq!(again.signature("sha256:aa"), Some(one.clone()));
        assert_eq!(again.signature("sha256:ab"), None);
        let path = again.signature_path("sha256:aa");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(again.signature("sha256:aa"), None);
        assert!(!path.exists());
    }

    #[test]
    fn the_oldest_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1000).unwrap();
        let one = CosignSignature {
            payload: b"{}".to_vec(),
            signature: String::new(),
        };
        let old = std::time::SystemTime::UNIX_EPOCH;
        store.put_signature("first", &one).unwrap();
        let first = File::options()
            .write(true)
            .open(store.signature_path("first"));
        first.unwrap().set_modified(old).unwrap();
        for number in 0..MAX_KEPT {
            let file = store.signatures.join(number.to_string());
            std::fs::write(file, "{}").unwrap();
        }
        store.put_signature("last", &one).unwrap();
        assert_eq!(store.signature("first"), None);
        assert_eq!(store.signature("last"), Some(one));
        assert_eq!(
            super::super::files(&store.signatures).unwrap().len(),
            MAX_KEPT
        );
    }
}
