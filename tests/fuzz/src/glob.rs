//! Globs of allow lists, compared with what Go's `path.Match` says of them.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use atc_artifact::Glob;

use crate::split;

/// The variable that names the program that asks Go, which `pathmatch/` becomes. Without it only what holds by itself is
/// looked at.
pub const PATH_MATCH: &str = "PATH_MATCH";

/// A glob and a name with a zero between them: it is as Go says.
pub fn glob(data: &[u8]) {
    let (glob, name) = split(data, 0);
    let (Ok(glob), Ok(name)) = (str::from_utf8(glob), str::from_utf8(name)) else {
        return;
    };
    let ours = match glob.parse::<Glob>() {
        Err(error) => {
            assert_eq!(error.glob, glob);
            b'e'
        }
        Ok(parsed) => {
            assert_eq!(parsed.to_string(), glob);
            if parsed.matches(name) { b'1' } else { b'0' }
        }
    };
    if let Some(go) = ask(glob, name) {
        assert_eq!(
            char::from(ours),
            char::from(go),
            "Go differs on {glob:?} and {name:?}"
        );
    }
}

/// What Go says: `1`, `0`, or `e` for what is no glob.
#[expect(clippy::panic, reason = "without its answer nothing is tested")]
fn ask(glob: &str, name: &str) -> Option<u8> {
    static HELPER: Mutex<Option<Child>> = Mutex::new(None);
    let program = std::env::var_os(PATH_MATCH)?;
    let mut helper = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    if helper.is_none() {
        let mut command = Command::new(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        *helper = command.spawn().ok();
    }
    let answer = helper.as_mut().and_then(|child| {
        let input = child.stdin.as_mut()?;
        let mut question = Vec::with_capacity(glob.len() + name.len() + 8);
        for text in [glob, name] {
            question.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
            question.extend(text.as_bytes());
        }
        input.write_all(&question).ok()?;
        input.flush().ok()?;
        let mut answer = [0];
        child.stdout.as_mut()?.read_exact(&mut answer).ok()?;
        Some(answer[0])
    });
    Some(answer.unwrap_or_else(|| panic!("{} does not answer", program.display())))
}
