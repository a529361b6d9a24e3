//! `yoke blackbox`: which releases and revisions there are, what one holds, how two differ. Nothing is written.

mod lists;

use anyhow::bail;
use atc_engine::artifact::{Location, LocationError};
use atc_engine::release::cluster::{Cluster, Found};
use atc_engine::release::drift;
use atc_engine::release::history::{self, Head, Revision};

use crate::cli::{self, Blackbox, Data, Format, Global, given};
use crate::connect::{self, Need};
use crate::render::Hinted;
use crate::{output, render};

/// Prints what the arguments ask for.
pub(crate) async fn run(global: &Global, args: &Blackbox) -> anyhow::Result<()> {
    let wanted = Wanted::of(args)?;
    let connection = connect::connect(global, args.namespace.as_deref(), Need::Cluster).await?;
    let cluster = &connection.cluster;
    let namespace = given(args.namespace.as_ref());
    let found = cluster
        .find_revisions(args.release.as_deref(), namespace, &connection.namespace)
        .await?;
    let Some(release) = &args.release else {
        tell(&found);
        let place = namespace.map_or(String::new(), |name| format!(" in namespace \"{name}\""));
        return lists::releases(&found.heads, args.output.unwrap_or(Format::Table), &place).await;
    };
    let heads = of_one_release(release, namespace, &found)?;
    tell(&found);
    match wanted {
        Wanted::List => lists::revisions(&heads, args.output.unwrap_or(Format::Table)).await,
        Wanted::One(id, data) => {
            let revision = read(cluster, release, &heads, id).await?;
            let objects = drift::by_canonical_name(revision.stages.objects());
            output::write_data(&objects, data).await
        }
        Wanted::Two(one, two) => {
            let (from, to) = (
                read(cluster, release, &heads, one).await?,
                read(cluster, release, &heads, two).await?,
            );
            let names = (format!("revision {one}"), format!("revision {two}"));
            let options = super::diff_options(&args.diffs, &names.0, &names.1);
            let text = drift::diff(&from.stages, &to.stages, &options)?;
            if text.is_empty() {
                render::message(format!("{} and {} are the same", names.0, names.1));
            }
            output::write(text).await
        }
    }
}

/// What is to be printed, once the release is found.
enum Wanted {
    List,
    One(usize, Data),
    Two(usize, usize),
}

impl Wanted {
    fn of(args: &Blackbox) -> anyhow::Result<Self> {
        if let Some(release) = &args.release {
            super::check_release(release)?;
        }
        match (&args.id, &args.other) {
            (None, _) => Ok(Self::List),
            (Some(id), None) => {
                let data = match args.output {
                    None | Some(Format::Yaml) => Data::Yaml,
                    Some(Format::Json) => Data::Json,
                    Some(Format::Table) => bail!("a revision is printed as yaml or json"),
                };
                Ok(Self::One(number(id)?, data))
            }
            (Some(one), Some(two)) => {
                if args.output.is_some() {
                    bail!("-output is for lists and single revisions, two are compared as text");
                }
                Ok(Self::Two(number(one)?, number(two)?))
            }
        }
    }
}

/// The id of a revision.
fn number(text: &str) -> anyhow::Result<usize> {
    cli::revision(text).map_err(anyhow::Error::msg)
}

/// The revisions of the release, in the order of their ids.
fn of_one_release<'a>(
    release: &str,
    namespace: Option<&str>,
    found: &'a Found,
) -> anyhow::Result<Vec<&'a Head>> {
    let mut places: Vec<&str> = found
        .heads
        .iter()
        .map(|head| head.namespace.as_str())
        .collect();
    places.dedup();
    match places.as_slice() {
        [_] => Ok(history::numbered(&found.heads)),
        [] => {
            let place = match namespace {
                Some(name) => format!("in namespace \"{name}\""),
                None if found.only_home => {
                    "in the namespace of the context, the only one that may be read".to_owned()
                }
                None if !found.forbidden.is_empty() => {
                    "in the namespaces that may be read".to_owned()
                }
                None => "in any namespace".to_owned(),
            };
            let words: Vec<String> = unreadable(found);
            if words.is_empty() {
                bail!("release \"{release}\" does not exist {place}");
            }
            bail!(
                "no revision of release \"{release}\" {place} can be read: {}",
                render::names(&words)
            )
        }
        several => Err(Hinted::new(
            format!(
                "release \"{release}\" exists in {} namespaces: {}",
                several.len(),
                render::names(several)
            ),
            "-namespace chooses one",
        )
        .into()),
    }
}

/// One revision with its objects.
async fn read(
    cluster: &Cluster,
    release: &str,
    heads: &[&Head],
    id: usize,
) -> anyhow::Result<Revision> {
    let Some(head) = heads.get(id - 1) else {
        let named = heads
            .first()
            .map_or_else(String::new, |head| super::named(release, &head.namespace));
        bail!(
            "{named} has no revision {id}, its revisions are 1 to {}",
            heads.len()
        );
    };
    match cluster.revision(head).await? {
        Some(revision) => Ok(revision),
        None => bail!("revision {id} of release \"{release}\" was removed just now"),
    }
}

/// Says what was left out, and why.
fn tell(found: &Found) {
    let words = unreadable(found);
    if !words.is_empty() {
        render::warning(format!(
            "{} that should be revisions cannot be read:",
            counted(words.len(), "secret")
        ));
        render::list(&words);
    }
    if found.only_home {
        render::warning(
            "only the namespace of the context was searched: namespaces may not be listed",
        );
    } else if !found.forbidden.is_empty() {
        render::warning(format!(
            "the secrets of {} may not be read: {}",
            counted(found.forbidden.len(), "namespace"),
            render::names(&found.forbidden)
        ));
    }
}

fn unreadable(found: &Found) -> Vec<String> {
    let words = |unreadable: &atc_engine::release::cluster::Unreadable| {
        format!("namespace \"{}\": {}", unreadable.namespace, unreadable.why)
    };
    found.unreadable.iter().map(words).collect()
}

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The source of a revision without what gives access: a record that others have written may hold a password.
fn source(url: &str) -> String {
    match url.parse::<Location>() {
        Ok(location) => location.canonical(),
        Err(LocationError::Scheme { location, .. } | LocationError::Url { location, .. }) => {
            location
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        for (text, wanted) in [("1", Some(1)), ("12", Some(12)), ("0", None), ("-1", None)] {
            assert_eq!(number(text).ok(), wanted, "{text}");
        }
        for text in ["x", "", "1.0", " 1", "99999999999999999999999"] {
            let error = number(text).expect_err(text).to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn sources_give_no_access() {
        for (url, wanted) in [
            ("", ""),
            ("file:///tmp/a.wasm", "file:///tmp/a.wasm"),
            ("https://h/a.wasm?v=1", "https://h/a.wasm?v=1"),
            ("oci://h/a:1", "oci://h/a:1"),
        ] {
            assert_eq!(source(url), wanted);
        }
        for url in [
            "https://u:hunter2@h/a.wasm",
            "https://h/a.wasm?token=hunter2",
            "ftp://u:hunter2@h/a",
            "https://u:hunter2@h:x/a",
            "oci://u:hunter2@h/a",
        ] {
            assert!(!source(url).contains("hunter2"), "{}", source(url));
        }
    }
}
