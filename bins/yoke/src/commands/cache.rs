//! `yoke cache`: the folder of downloaded and compiled modules, listed or made smaller.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use atc_engine::artifact::{CachedFile, CachedFiles};
use atc_engine::flight::CompiledFiles;
use serde_json::{Value, json};

use crate::cli::{Cache, CacheCommand, Data, Format, Prune};
use crate::{output, render};

/// A file of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    what: What,
    name: String,
    bytes: u64,
    used: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Module,
    Compiled,
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Compiled => "compiled",
        }
    }
}

/// Does what was asked for, on a thread that may block.
pub(super) async fn run(args: &Cache) -> anyhow::Result<()> {
    match &args.command {
        CacheCommand::Ls(args) => {
            let mut files = blocking(args.compilation_cache.clone(), |dir| list(&dir)).await?;
            files.sort_by_key(|file| std::cmp::Reverse(file.used));
            let data = match args.output {
                Format::Table => return output::write(table(&files)).await,
                Format::Json => Data::Json,
                Format::Yaml => Data::Yaml,
            };
            output::write_data(&Value::Array(files.iter().map(row).collect()), data).await
        }
        CacheCommand::Prune(args) => {
            let limits = Limits::of(args);
            let removed = blocking(args.compilation_cache.clone(), move |dir| {
                let doomed = doomed(list(&dir)?, &limits, SystemTime::now());
                remove(&dir, &doomed)
            })
            .await?;
            let bytes: u64 = removed.bytes;
            render::message(format!(
                "removed {} files of {}",
                removed.files,
                size(bytes)
            ));
            match removed.failed {
                Some((path, error)) => Err(anyhow::Error::new(error).context(format!(
                    "{} files could not be removed, the first of them \"{path}\"",
                    removed.left
                ))),
                None => Ok(()),
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    dir: std::path::PathBuf,
    work: impl FnOnce(std::path::PathBuf) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let shown = dir.display().to_string();
    let done = tokio::task::spawn_blocking(move || work(dir)).await?;
    done.with_context(|| format!("cannot use the cache in \"{shown}\""))
}

fn list(dir: &Path) -> anyhow::Result<Vec<File>> {
    // A folder that is not there holds nothing, but a word that was mistyped should be told.
    dir.metadata()?;
    let mut files = Vec::new();
    if let Some(modules) = CachedFiles::open(dir)? {
        files.extend(modules.list()?.into_iter().map(|file| File {
            what: What::Module,
            name: file.name,
            bytes: file.bytes,
            used: file.used,
        }));
    }
    if let Some(compiled) = CompiledFiles::open(dir)? {
        files.extend(compiled.list()?.into_iter().map(|file| File {
            what: What::Compiled,
            name: file.name,
            bytes: file.bytes,
            used: file.used,
        }));
    }
    Ok(files)
}

/// What a pruning did.
#[derive(Default)]
struct Removed {
    files: usize,
    bytes: u64,
    /// How many files are there still.
    left: usize,
    /// The first of those, and why.
    failed: Option<(String, std::io::Error)>,
}

impl Removed {
    fn count(&mut self, file: &File, result: std::io::Result<bool>) {
        match result {
            Ok(true) => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(file.bytes);
            }
            // Somebody else removed it meanwhile.
            Ok(false) => {}
            Err(error) => {
                self.left += 1;
                self.failed.get_or_insert((file.name.clone(), error));
            }
        }
    }
}

fn remove(dir: &Path, doomed: &[File]) -> anyhow::Result<Removed> {
    let mut removed = Removed::default();
    let of = |what| doomed.iter().filter(move |file| file.what == what);
    if let Some(modules) = CachedFiles::open(dir)? {
        for file in of(What::Module) {
            let cached = CachedFile {
                name: file.name.clone(),
                bytes: file.bytes,
                used: file.used,
            };
            removed.count(file, modules.remove(&cached));
        }
    }
    if let Some(compiled) = CompiledFiles::open(dir)? {
        for file in of(What::Compiled) {
            removed.count(file, compiled.remove(&file.name));
        }
    }
    Ok(removed)
}

/// What may stay.
struct Limits {
    bytes: Option<u64>,
    unused: Option<Duration>,
}

impl Limits {
    fn of(args: &Prune) -> Self {
        Self {
            bytes: args.max_mib.map(|mib| mib.saturating_mul(1 << 20)),
            unused: args
                .older_than
                .map(|age| age.positive().unwrap_or_default()),
        }
    }
}

/// What goes: the least recently used first, of modules and of compiled code each by itself. With both limits a file
/// must be too old and there must be too much.
fn doomed(mut files: Vec<File>, limits: &Limits, now: SystemTime) -> Vec<File> {
    files.sort_by_key(|file| file.used);
    let mut doomed = Vec::new();
    for what in [What::Module, What::Compiled] {
        let own: Vec<&File> = files.iter().filter(|file| file.what == what).collect();
        let mut total: u64 = own.iter().map(|file| file.bytes).sum();
        for file in own {
            let fits = limits.bytes.is_some_and(|max| total <= max);
            let age = now.duration_since(file.used).unwrap_or_default();
            let young = limits.unused.is_some_and(|unused| age < unused);
            if fits || young {
                continue;
            }
            total = total.saturating_sub(file.bytes);
            doomed.push(file.clone());
        }
    }
    doomed
}

fn row(file: &File) -> Value {
    json!({ "kind": file.what.word(), "name": file.name, "bytes": file.bytes, "lastUsed": when(file.used) })
}

fn table(files: &[File]) -> String {
    let rows: Vec<[String; 4]> = files
        .iter()
        .map(|file| {
            [
                file.what.word().to_owned(),
                file.name.clone(),
                size(file.bytes),
                when(file.used),
            ]
        })
        .collect();
    render::table(["kind", "name", "size", "last used"], &rows)
}

/// To the second, as Kubernetes writes times.
fn when(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_gone_is_counted() {
        let dir = tempfile::tempdir().expect("a folder");
        let content = dir.path().join("modules/content");
        std::fs::create_dir_all(content.join("stays")).expect("a folder in the way");
        std::fs::write(content.join("goes"), "123").expect("a file");
        let doomed = ["stays", "goes", "gone"].map(|name| File {
            what: What::Module,
            name: name.to_owned(),
            bytes: 3,
            used: SystemTime::UNIX_EPOCH,
        });
        let removed = remove(dir.path(), &doomed).expect("a cache");
        assert_eq!((removed.files, removed.bytes, removed.left), (1, 3, 1));
        assert_eq!(removed.failed.expect("one failed").0, "stays");
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let file = |what, name: &str, bytes, age| File {
            what,
            name: name.to_owned(),
            bytes,
            used: now - Duration::from_secs(age),
        };
        let files = || {
            vec![
                file(What::Module, "a", 10, 5),
                file(What::Module, "b", 10, 50),
                file(What::Compiled, "c", 30, 500),
                file(What::Module, "d", 10, 500),
                file(What::Compiled, "e", 30, 5),
            ]
        };
        for (bytes, unused, expect) in [
            (None, None, "dbace"),
            (Some(0), None, "dbace"),
            (Some(10), None, "dbce"),
            (Some(20), None, "dce"),
            (Some(30), None, "c"),
            (Some(1000), None, ""),
            (None, Some(100), "dc"),
            (None, Some(10), "dbc"),
            (None, Some(1000), ""),
            (Some(0), Some(100), "dc"),
            (Some(20), Some(10), "dc"),
        ] {
            let limits = Limits {
                bytes,
                unused: unused.map(Duration::from_secs),
            };
            let gone: String = doomed(files(), &limits, now)
                .iter()
                .map(|file| file.name.as_str())
                .collect();
            assert_eq!(gone, expect, "{bytes:?} {unused:?}");
        }
    }
}
