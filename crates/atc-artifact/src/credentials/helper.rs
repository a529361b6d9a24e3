//! Asks a credential helper: `docker-credential-NAME get`, the registry on its stdin.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::{Credential, CredentialsError};

/// How long a credential helper may take: 20 s. Some ask a cloud, some ask the user for a password.
const HELPER_TIMEOUT: Duration = Duration::from_secs(20);
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
    let (succeeded, said) = tokio::time::timeout(HELPER_TIMEOUT, run(&program, server))
        .await
        .map_err(|_| CredentialsError::HelperTimeout {
            program: program.clone(),
            limit: HELPER_TIMEOUT,
        })?
        .map_err(|source| CredentialsError::Helper {
            program: program.clone(),
            source,
        })?;
    let failed = |said: String| CredentialsError::HelperFailed {
        program: program.clone(),
        said,
    };
    if succeeded {
        let answer: Answer = serde_json::from_slice(&said)
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
    let said = String::from_utf8_lossy(&said);
    let said = said.trim();
    if said.contains("credentials not found") || said.contains("no credentials") {
        return Ok(None);
    }
    let short: String = said
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_COMPLAINT)
        .collect();
    Err(failed(short))
}

/// Runs the program; whether it succeeded, and its stdout.
async fn run(program: &str, server: &str) -> std::io::Result<(bool, Vec<u8>)> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read says so by its exit code.
        let _ = stdin.write_all(server.as_bytes()).await;
    }
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_ANSWER).read_to_end(&mut said).await?;
    }
    let status = child.wait().await?;
    Ok((status.success(), said))
}
