//! Asks a credential helper: `docker-credential-NAME get`, the registry on its stdin.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::{Credential, CredentialsError};

/// How long a credential helper may take: 20 s. Some ask a cloud, some ask the user for a password.
const HELPER_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two looks whether a helper that has answered has ended: 5 ms.
const POLL: Duration = Duration::from_millis(5);
/// Largest answer of a helper: 64 KiB; tokens of clouds have a few.
const MAX_ANSWER: u64 = 64 << 10;
/// The user name that says that the secret is an identity token.
const IDENTITY: &str = "<token>";
/// How much of what a helper complains is repeated: 200 letters.
const MAX_COMPLAINT: usize = 200;

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "Username")]
    user: String,
    #[serde(rename = "Secret")]
    secret: String,
}

/// What the helper has for this registry, if it has something.
pub(super) async fn get(name: &str, server: &str) -> Result<Option<Credential>, CredentialsError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(word) {
        return Err(CredentialsError::HelperName {
            helper: name.to_owned(),
        });
    }
    let program = format!("docker-credential-{name}");
    let (succeeded, said) = ask(&program, server, HELPER_TIMEOUT).await?;
    understand(&program, succeeded, &said)
}

fn understand(
    program: &str,
    succeeded: bool,
    said: &[u8],
) -> Result<Option<Credential>, CredentialsError> {
    let failed = |said: String| CredentialsError::HelperFailed {
        program: program.to_owned(),
        said,
    };
    if succeeded {
        let answer: Answer = serde_json::from_slice(said)
            .map_err(|_| failed("its answer is no JSON with Username and Secret".to_owned()))?;
        return Ok(Some(if answer.user == IDENTITY {
            Credential::Identity(answer.secret)
        } else {
            Credential::Password {
                user: answer.user,
                password: answer.secret,
            }
        }));
    }
    // All helpers complain on stdout; these words are the protocol's.
    let said = String::from_utf8_lossy(said);
    if said.contains("credentials not found") {
        return Ok(None);
    }
    let clean = said.trim().chars().filter(|c| !c.is_control());
    Err(failed(clean.take(MAX_COMPLAINT).collect()))
}

/// Runs the program; whether it succeeded, and its stdout.
async fn ask(
    program: &str,
    server: &str,
    limit: Duration,
) -> Result<(bool, Vec<u8>), CredentialsError> {
    let failed = |source| CredentialsError::Helper {
        program: program.to_owned(),
        source,
    };
    let mut child = Running::start(program).map_err(failed)?;
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
    let server = server.to_owned();
    let talk = tokio::task::spawn_blocking(move || {
        if let Some(mut stdin) = stdin {
            // A helper that does not read says so by its exit code.
            let _ = stdin.write_all(server.as_bytes());
        }
        let mut said = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MAX_ANSWER).read_to_end(&mut said)?;
        }
        Ok::<_, std::io::Error>(said)
    });
    let all = async {
        let said = talk.await.map_err(std::io::Error::other)??;
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok((status.success(), said));
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let result = tokio::time::timeout(limit, all).await;
    result
        .map_err(|_| CredentialsError::HelperTimeout {
            program: program.to_owned(),
            limit,
        })?
        .map_err(failed)
}

/// A helper that is ended when nobody waits for it any more.
struct Running(Child);

impl Running {
    fn start(program: &str) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().map(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing where it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A helper that does as this shell script says.
    fn helper(dir: &tempfile::TempDir, script: &str) -> String {
        let path = dir.path().join("helper");
        let text = format!("#!/bin/sh\n{script}\n");
        // By another process: a file that this one has open for writing cannot be run while a test beside forks.
        let write = [r#"printf %s "$1" > "$2" && chmod +x "$2""#, "sh", &text];
        let status = Command::new("sh")
            .arg("-c")
            .args(write)
            .arg(&path)
            .status()
            .unwrap();
        assert!(status.success());
        path.display().to_string()
    }

    #[tokio::test]
    async fn helpers_are_asked_and_understood() {
        let answer = r#"test "$1" = get && read -r s; echo "{\"ServerURL\":\"$s\",\"Username\":\"joe\",\"Secret\":\"$s\"}""#;
        let dir = tempfile::tempdir().unwrap();
        let program = helper(&dir, answer);
        let (succeeded, said) = ask(&program, "h.io", HELPER_TIMEOUT).await.unwrap();
        let Some(Credential::Password { user, password }) =
            understand("p", succeeded, &said).unwrap()
        else {
            panic!("a password")
        };
        assert_eq!((user.as_str(), password.as_str()), ("joe", "h.io"));

        let token = br#"{"Username":"<token>","Secret":"t"}"#;
        assert_eq!(
            understand("p", true, token).unwrap(),
            Some(Credential::Identity("t".into()))
        );
        let none = b"credentials not found in native keychain\n";
        assert_eq!(understand("p", false, none).unwrap(), None);
        for (succeeded, said, words) in [
            (true, &b"secret"[..], "no JSON"),
            (true, br#"{"Username":"secret"}"#, "no JSON"),
            (false, b"locked\n", "'p' failed: locked"),
        ] {
            let error = understand("p", succeeded, said).unwrap_err().to_string();
            assert!(
                error.contains(words) && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_no_helper_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(200);
        let slow = ask(&helper(&dir, "exec sleep 600"), "h.io", limit)
            .await
            .unwrap_err();
        assert!(slow.to_string().contains("within 200ms"), "{slow}");
        let (succeeded, _) = ask(&helper(&dir, "exit 3"), "h.io", HELPER_TIMEOUT)
            .await
            .unwrap();
        assert!(!succeeded);
        assert!(get("not-there-at-all", "h.io").await.is_err());
        for name in ["", "../x", "a b", "a/b"] {
            let error = get(name, "h.io").await.unwrap_err();
            assert!(
                matches!(error, CredentialsError::HelperName { .. }),
                "{error}"
            );
        }
    }
}
