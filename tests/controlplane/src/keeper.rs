//! Processes that never outlive their owner.
//!
//! A small shell reads the process groups of all children from a pipe whose other end only the owner holds. When the
//! owner ends, even by `kill -9`, the pipe closes, and the shell ends the groups and removes the folder.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// `+N` and `-N` lines add and drop the process group N; the end of the input ends all that are left.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
groups=" "
while read -r line; do
  group=${line#?}
  case $line in
    +*) groups="$groups$group " ;;
    -*) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
for try in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" 2>/dev/null && exit 0
  sleep 0.2
done
"#;

/// How long a process may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// The keeper's input; taken out when the keeper ends.
type Pipe = Arc<Mutex<Option<ChildStdin>>>;

/// Ends the processes of one folder, and removes the folder, when it is dropped or its owner ends.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
    pipe: Pipe,
    folder: PathBuf,
}

impl Keeper {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "keeper"]).arg(folder);
        // A group of its own: Ctrl-C at the terminal is for the owner.
        command
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut shell = command.spawn().context("run \"sh\"")?;
        let pipe = shell.stdin.take().context("no standard input of \"sh\"")?;
        Ok(Self {
            shell,
            pipe: Arc::new(Mutex::new(Some(pipe))),
            folder: folder.to_owned(),
        })
    }

    /// Starts a process whose output is appended to `<folder>/<name>.log`.
    pub(crate) fn spawn(&self, name: &str, mut command: Command) -> Result<Process> {
        let log = self.log(name)?;
        command.stdout(log);
        self.start(name, command)
    }

    /// Starts a process whose standard output is read here.
    pub(crate) fn spawn_piped(
        &self,
        name: &str,
        mut command: Command,
    ) -> Result<(Process, ChildStdout)> {
        command.stdout(Stdio::piped());
        let mut process = self.start(name, command)?;
        let output = process.child.stdout.take().context("no standard output")?;
        Ok((process, output))
    }

    fn start(&self, name: &str, mut command: Command) -> Result<Process> {
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(self.log(name)?);
        let child = command
            .spawn()
            .with_context(|| format!("run \"{}\"", command.get_program().display()))?;
        tell(&self.pipe, '+', child.id());
        let (log, pipe) = (
            self.folder.join(format!("{name}.log")),
            Arc::clone(&self.pipe),
        );
        Ok(Process {
            name: name.to_owned(),
            child,
            log,
            pipe,
            ended: None,
        })
    }

    fn log(&self, name: &str) -> Result<File> {
        let path = self.folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&path);
        file.with_context(|| format!("open \"{}\"", path.display()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Closes it, whoever still holds one of the processes: the shell ends them.
        drop(lock(&self.pipe).take());
        _ = self.shell.wait();
    }
}

fn tell(pipe: &Pipe, sign: char, group: u32) {
    if let Some(pipe) = lock(pipe).as_mut() {
        _ = writeln!(pipe, "{sign}{group}");
    }
}

fn lock(pipe: &Pipe) -> MutexGuard<'_, Option<ChildStdin>> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One process of a control plane, or one that was given to it to keep. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    pipe: Pipe,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file that has its standard output and standard error.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// How it ended, or nothing while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.note(status);
        }
        self.ended
    }

    /// Fails, with the last lines of its log, when it has ended.
    ///
    /// # Errors
    ///
    /// When the process is no longer there.
    pub fn check(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); its last words:\n{}",
                self.name,
                self.log_tail(15)
            ),
        }
    }

    /// Sends a signal by its name without `SIG`, for instance `TERM`, `STOP` or `CONT`.
    ///
    /// # Errors
    ///
    /// When the process has ended or the signal cannot be sent.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        self.check()?;
        // The shell's own `kill`, since a bare machine may lack the program.
        let id = self.child.id().to_string();
        let arguments = ["-c", "kill -s \"$1\" -- \"$2\"", "kill", name, &id];
        let status = Command::new("sh")
            .args(arguments.map(OsStr::new))
            .status()
            .context("run \"sh\"")?;
        if !status.success() {
            bail!("SIG{name} could not be sent to {} ({id})", self.name);
        }
        Ok(())
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        if self.ended().is_none() {
            _ = self.child.kill();
            if let Ok(status) = self.child.wait() {
                self.note(status);
            }
        }
    }

    /// Ends it with SIGTERM and returns how it ended; after 15 s it is killed, which is an error.
    ///
    /// # Errors
    ///
    /// When it had ended before or did not end in time.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.signal("TERM")?;
        let end = Instant::now() + GRACE;
        while Instant::now() < end {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        bail!(
            "{} did not end within {} s of SIGTERM",
            self.name,
            GRACE.as_secs()
        )
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    ///
    /// When it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if Instant::now() >= end {
                bail!("{} still runs after {limit:?}", self.name);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn note(&mut self, status: ExitStatus) {
        tell(&self.pipe, '-', self.child.id());
        self.ended = Some(status);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
