//! Reading: one object, its metadata alone, lists.

use http::Method;
use serde_json::Value;

use super::mapping::{Mapping, encode};
use super::request::{Call, JSON, METADATA, METADATA_LIST};
use super::{Cluster, ClusterError, ErrorKind};

/// Objects asked for in one page of a list. Kubernetes' own clients take 500; a page must fit into the answer's limit
/// even when its objects are large.
pub const PAGE: usize = 250;
/// Pages read of one list: 250,000 objects.
const MAX_PAGES: usize = 1000;

/// The metadata of a live object.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveMeta(Value);

impl LiveMeta {
    /// The metadata of a whole object.
    pub fn of(object: &Value) -> Self {
        Self(object.get("metadata").cloned().unwrap_or(Value::Null))
    }

    /// `metadata` as JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.text("namespace")
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.text("uid")
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.text("resourceVersion")
    }

    /// `metadata.generation`; kinds without one have none.
    pub fn generation(&self) -> Option<i64> {
        self.0.get("generation").and_then(Value::as_i64)
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.0
            .get("deletionTimestamp")
            .is_some_and(|time| !time.is_null())
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.get("labels")?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.get("annotations")?.get(key)?.as_str()
    }

    /// Whether this field manager has applied it (server-side) and still owns fields of it.
    pub fn is_applied_by(&self, manager: &str) -> bool {
        let entries = self.0.get("managedFields").and_then(Value::as_array);
        entries
            .into_iter()
            .flatten()
            .any(|entry| entry["manager"] == *manager && entry["operation"] == "Apply")
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Vec<&str> {
        self.0
            .get("finalizers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// `metadata.ownerReferences`, as they stand.
    pub fn owner_references(&self) -> &[Value] {
        self.0
            .get("ownerReferences")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

/// One page of a list.
pub(super) struct Page {
    /// Its objects, with API version and kind.
    pub(super) items: Vec<Value>,
    /// The token of the next page; empty after the last.
    pub(super) next: String,
    /// The resourceVersion of the list.
    pub(super) version: String,
}

impl Cluster {
    /// An object, or `None` when there is no such object (a namespace that does not exist holds none).
    pub async fn get(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let call = Call::object("read", Method::GET, mapping, namespace, name, "")?;
        self.read(call, mapping).await
    }

    /// Its metadata alone: a few hundred bytes however large the object is.
    pub async fn metadata(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
    ) -> Result<Option<LiveMeta>, ClusterError> {
        let call =
            Call::object("read", Method::GET, mapping, namespace, name, "")?.accept(METADATA);
        Ok(self
            .read(call, mapping)
            .await?
            .map(|object| LiveMeta::of(&object)))
    }

    /// The objects of a kind: of one namespace or of all, with these labels (`a=b,c!=d`) or all.
    ///
    /// # Errors
    /// Among others [`ErrorKind::Expired`] when the list changed too much between two pages, [`ErrorKind::TooLarge`].
    pub async fn list(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ClusterError> {
        self.pages(mapping, namespace, labels, JSON, PAGE).await
    }

    /// The metadata of the objects of a kind.
    pub async fn list_metadata(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<LiveMeta>, ClusterError> {
        let items = self
            .pages(mapping, namespace, labels, METADATA_LIST, PAGE)
            .await?;
        Ok(items.iter().map(LiveMeta::of).collect())
    }

    /// All pages of a list. Items of a list carry no apiVersion and kind of their own: they are filled in.
    pub(super) async fn pages(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
        accept: &'static str,
        page: usize,
    ) -> Result<Vec<Value>, ClusterError> {
        let mut all = Vec::new();
        self.each_page(mapping, namespace, labels, accept, page, |mut items| {
            all.append(&mut items);
        })
        .await?;
        Ok(all)
    }

    /// All objects with these labels, and the resourceVersion of the list: whatever changed up to there is in it.
    pub(super) async fn list_at(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<(Vec<Value>, String), ClusterError> {
        let mut all = Vec::new();
        let take = |mut items: Vec<Value>| all.append(&mut items);
        let version = self
            .each_page(mapping, namespace, labels, JSON, PAGE, take)
            .await?;
        Ok((all, version))
    }

    /// The same page by page, for callers who need not hold all of them at once. Gives the resourceVersion of the list,
    /// which all its pages are of; empty where the server does not say.
    pub(super) async fn each_page(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
        accept: &'static str,
        page: usize,
        mut take: impl FnMut(Vec<Value>) + Send,
    ) -> Result<String, ClusterError> {
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let query = format!(
                "limit={page}{}{}",
                parameter("labelSelector", labels),
                parameter("continue", Some(&token))
            );
            let page = self.page(mapping, namespace, &query, accept).await?;
            take(page.items);
            if page.next.is_empty() {
                return Ok(page.version);
            }
            token = page.next;
        }
        Err(ClusterError::BadAnswer {
            doing: "list",
            object: mapping.named("*", "*"),
            why: format!("more than {MAX_PAGES} pages of {page} objects"),
        })
    }

    /// The first objects of a list, at most `limit`.
    pub(super) async fn first_page(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Value>, ClusterError> {
        let (labels, fields) = (
            parameter("labelSelector", labels),
            parameter("fieldSelector", fields),
        );
        let query = format!("limit={limit}{labels}{fields}");
        Ok(self.page(mapping, namespace, &query, JSON).await?.items)
    }

    /// The metadata of the first objects of a list, at most `limit`, and whether these are all.
    pub(super) async fn first_metadata(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<LiveMeta>, bool), ClusterError> {
        let query = format!("limit={limit}");
        let page = self.page(mapping, namespace, &query, METADATA_LIST).await?;
        let items = page.items.iter().map(LiveMeta::of).collect();
        Ok((items, page.next.is_empty()))
    }

    /// One page of a list.
    pub(super) async fn page(
        &self,
        mapping: &Mapping,
        namespace: Option<&str>,
        query: &str,
        accept: &'static str,
    ) -> Result<Page, ClusterError> {
        let call = Call::collection("list", Method::GET, mapping, namespace)?
            .query(query)
            .accept(accept);
        let mut list = self.known(self.call(&call).await, mapping)?.json(&call)?;
        let metadata = |field: &str| {
            let value = list
                .get("metadata")
                .and_then(|metadata| metadata.get(field));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (next, version) = (metadata("continue"), metadata("resourceVersion"));
        let mut items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            // An empty list may come as null.
            Some(Value::Null) => Vec::new(),
            _ => return Err(call.nonsense("a list without items")),
        };
        for item in &mut items {
            if let Value::Object(fields) = item {
                fields
                    .entry("apiVersion")
                    .or_insert_with(|| mapping.api_version().into());
                fields
                    .entry("kind")
                    .or_insert_with(|| mapping.kind.clone().into());
            }
        }
        Ok(Page {
            items,
            next,
            version,
        })
    }

    async fn read(&self, call: Call, mapping: &Mapping) -> Result<Option<Value>, ClusterError> {
        match self.known(self.call(&call).await, mapping) {
            Ok(answer) => Ok(Some(answer.json(&call)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The result of a call, after forgetting what we knew of the kind if the server does not serve it (any more).
    pub(super) fn known<T>(
        &self,
        result: Result<T, ClusterError>,
        mapping: &Mapping,
    ) -> Result<T, ClusterError> {
        match result {
            Err(error) if error.kind() == ErrorKind::NoSuchKind => {
                self.forget_group(&mapping.group);
                Err(ClusterError::NoSuchKind {
                    api_version: mapping.api_version(),
                    kind: mapping.kind.clone(),
                })
            }
            other => other,
        }
    }
}

/// `&key=value`, or nothing.
fn parameter(key: &str, value: Option<&str>) -> String {
    value
        .filter(|value| !value.is_empty())
        .map(|value| format!("&{key}={}", encode(value)))
        .unwrap_or_default()
}
