//! A kubeconfig, read from its file. It holds credentials, so errors say where something is wrong and never what stands there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kube::config::{Kubeconfig, KubeconfigError};

/// Why a file is no kubeconfig.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigFileError {
    /// There is none.
    #[error("the kubeconfig \"{}\" does not exist", .0.display())]
    Missing(PathBuf),
    /// It can't be read.
    #[error("the kubeconfig \"{}\" cannot be read", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no YAML, or says something that a kubeconfig does not.
    #[error(
        "the kubeconfig \"{}\" is not understood{place} (what stands there is not shown: it may be a secret)",
        path.display()
    )]
    Malformed {
        /// Which.
        path: PathBuf,
        /// ` at line L, column C`, from 1; empty where that is not known.
        place: String,
    },
    /// Its documents are of different sorts.
    #[error("the documents of the kubeconfig \"{}\" do not fit together", path.display())]
    Documents {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: KubeconfigError,
    },
}

/// Reads a kubeconfig. Paths in it count from its folder; several documents are merged.
///
/// # Errors
/// When there is no such file, or it is no kubeconfig.
pub fn kubeconfig(path: &Path) -> Result<Kubeconfig, KubeconfigFileError> {
    let of = || path.to_owned();
    if is_cut_utf16(path) {
        return Err(KubeconfigFileError::Malformed {
            path: of(),
            place: String::new(),
        });
    }
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(source, _) if source.kind() == io::ErrorKind::NotFound => {
            KubeconfigFileError::Missing(of())
        }
        KubeconfigError::ReadConfig(source, _) => KubeconfigFileError::Read { path: of(), source },
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            KubeconfigFileError::Documents {
                path: of(),
                source: error,
            }
        }
        KubeconfigError::Parse(error) => KubeconfigFileError::Malformed {
            path: of(),
            place: error.location().map_or_else(String::new, |at| {
                format!(" at line {}, column {}", at.line(), at.column())
            }),
        },
        _ => KubeconfigFileError::Malformed {
            path: of(),
            place: String::new(),
        },
    })
}

/// Whether a file begins as UTF-16 does and ends within a character: kube would panic. Pipes are not looked at, what they
/// hold can be read once.
fn is_cut_utf16(path: &Path) -> bool {
    let starts = || {
        let mut file = File::open(path)?;
        let size = file.metadata()?;
        let mut mark = [0; 2];
        if !size.is_file() || size.len() % 2 == 0 {
            return Ok(false);
        }
        file.read_exact(&mut mark)?;
        io::Result::Ok(matches!(mark, [0xFF, 0xFE] | [0xFE, 0xFF]))
    };
    starts().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_without_what_stands_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let said = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            let error = kubeconfig(&path).unwrap_err();
            let cause = error.source().map(ToString::to_string);
            format!("{error} {cause:?} {error:?}")
        };
        for content in [
            &b"users:\n- name: me\n  user:\n    token: hidden\n   bad: x\n"[..],
            b"users:\n- name: me\n  user: [hidden]\n",
            b"users:\n- name: me\n  user: hidden\n",
            b"users: hidden\n",
            b"users: {hidden\n",
            b"kind: Config\n---\nusers: hidden\n",
        ] {
            let said = said(content);
            assert!(said.contains("is not understood at line "), "{said}");
            assert!(!said.contains("hidden"), "{said}");
        }
        for odd in [
            &b"\xff\xfe\xff"[..],
            b"\xfe\xff\xff",
            b"\xff",
            b"\xfe\xff\xd8\x00",
        ] {
            let said = said(odd);
            assert!(
                said.contains("config\\\" ") || said.contains("config\" "),
                "{said}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        let error = kubeconfig(&path).unwrap_err().to_string();
        assert!(error.ends_with("does not exist"), "{error}");
        let error = kubeconfig(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with("cannot be read"), "{error}");
        assert!(error.source().is_some());
    }
}
