//! A question that changes nothing: would a write by this manager be refused?

use http::Method;
use serde_json::json;

use super::mapping::Mapping;
use super::request::{Call, MERGE_PATCH};
use super::{Cluster, ClusterError};

impl Cluster {
    /// Asks for a dry run of an empty change of an object, in the name of a field manager. `Ok` when it would be taken.
    ///
    /// # Errors
    /// Why not: [`ErrorKind::Denied`](super::ErrorKind::Denied) by an admission webhook, ….
    pub async fn probe(
        &self,
        mapping: &Mapping,
        namespace: &str,
        name: &str,
        manager: &str,
    ) -> Result<(), ClusterError> {
        let query = format!("dryRun=All&fieldManager={}", manager.replace('/', "%2F"));
        let call = Call::object("probe", Method::PATCH, mapping, namespace, name, "")?
            .query(&query)
            .body(MERGE_PATCH, &json!({}));
        self.patch(call, mapping).await.map(drop)
    }
}
