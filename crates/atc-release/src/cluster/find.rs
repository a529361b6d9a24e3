//! Which releases there are: all revisions that may be read, by metadata alone, without writing and without giving up
//! over what cannot be read.

use std::collections::BTreeSet;

use futures::FutureExt;

use super::mapping::{Mapping, secrets};
use super::read::LiveMeta;
use super::request::METADATA_LIST;
use super::revisions::read_head;
use super::{Cluster, ClusterError, ErrorKind, PAGE};
use crate::history::{self, Head, HistoryError};

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The revisions, by namespace, release and number.
    pub heads: Vec<Head>,
    /// Secrets that bear the label of a revision and are none.
    pub unreadable: Vec<Unreadable>,
    /// Namespaces whose Secrets may not be read.
    pub forbidden: Vec<String>,
    /// Namespaces may not be listed either, so that only the one was looked at that the caller knew.
    pub only_home: bool,
}

/// A Secret that says it is a revision, and cannot be read as one.
#[derive(Debug)]
pub struct Unreadable {
    /// The namespace of the Secret.
    pub namespace: String,
    /// What is wrong with it; names the Secret.
    pub why: HistoryError,
}

impl Cluster {
    /// The revisions of one release or of all, in one namespace or in all that may be read. Labels of the old form count.
    ///
    /// Whoever may not list the Secrets of the whole cluster is given those of each namespace that allows it; whoever may
    /// not list namespaces either, those of `home`.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] only when nothing at all may be read.
    pub async fn find_revisions(
        &self,
        release: Option<&str>,
        namespace: Option<&str>,
        home: &str,
    ) -> Result<Found, ClusterError> {
        let labels = release.map_or_else(history::selector_of_all, history::selector);
        let mut found = Found::default();
        match self.find_in(namespace, &labels).await {
            Ok(there) => found.take(there),
            Err(error) if error.kind() == ErrorKind::Forbidden && namespace.is_none() => {
                self.find_in_each(&mut found, &labels, home, error).await?;
            }
            Err(error) => return Err(error),
        }
        if let Some(release) = release {
            // A release whose plain name is the hash of another one would be found too.
            found.heads.retain(|head| head.release == release);
        }
        found.heads.sort_by(|one, two| {
            let key = |head: &Head| (head.created_at, head.secret.clone());
            (&one.namespace, &one.release)
                .cmp(&(&two.namespace, &two.release))
                .then_with(|| key(one).cmp(&key(two)))
        });
        Ok(found)
    }

    /// `refused` is what the look at the whole cluster met.
    async fn find_in_each(
        &self,
        found: &mut Found,
        labels: &str,
        home: &str,
        refused: ClusterError,
    ) -> Result<(), ClusterError> {
        let names: BTreeSet<String> = match self.list_metadata(&namespaces(), None, None).await {
            Ok(list) => list.iter().map(|live| live.name().to_owned()).collect(),
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                found.only_home = true;
                BTreeSet::from([home.to_owned()])
            }
            Err(error) => return Err(error),
        };
        let looks = names
            .iter()
            .map(|name| self.find_in(Some(name), labels).boxed());
        let answers = self.breadth(looks.collect()).await;
        let mut allowed = false;
        for (name, answer) in names.iter().zip(answers) {
            match answer {
                Ok(there) => {
                    allowed = true;
                    found.take(there);
                }
                Err(error) if error.kind() == ErrorKind::Forbidden => {
                    found.forbidden.push(name.clone());
                }
                Err(error) => return Err(error),
            }
        }
        if allowed { Ok(()) } else { Err(refused) }
    }

    async fn find_in(
        &self,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Result<Head, Unreadable>>, ClusterError> {
        let mut found = Vec::new();
        let read = |item: &serde_json::Value| {
            let live = LiveMeta::of(item);
            read_head(&live).map_err(|why| Unreadable {
                namespace: live.namespace().to_owned(),
                why,
            })
        };
        // Of each page only the heads are kept: a tenth of what was sent.
        let take = |items: Vec<serde_json::Value>| found.extend(items.iter().map(read));
        self.each_page(
            &secrets(),
            namespace,
            Some(labels),
            METADATA_LIST,
            PAGE,
            take,
        )
        .await?;
        Ok(found)
    }
}

impl Found {
    fn take(&mut self, there: Vec<Result<Head, Unreadable>>) {
        for one in there {
            match one {
                Ok(head) => self.heads.push(head),
                Err(unreadable) => self.unreadable.push(unreadable),
            }
        }
    }
}

/// The mapping of Namespaces.
pub(super) fn namespaces() -> Mapping {
    Mapping {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        namespaced: false,
    }
}
