//! Raw calls to the apiserver: paths and JSON, as a person with curl would.

use std::{fmt, time::Duration};

use anyhow::Result;
use http::{Method, Request, StatusCode};
use kube::client::Body;
use serde_json::Value;

/// The longest that one call may take.
const LIMIT: Duration = Duration::from_mins(1);

/// A client for raw calls. Paths begin with `/api` or `/apis`.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
}

/// An answer other than 2xx.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `message` of the apiserver's Status, else the body.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}

impl std::error::Error for Failure {}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Calls through this client.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The client behind it.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The object, or nothing when it is not there.
    pub async fn get(&self, path: &str) -> Result<Option<Value>> {
        match self.send(Method::GET, path, "", None).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if failure(&error).is_some_and(|f| f.status == StatusCode::NOT_FOUND) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The items of a list.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut list = self.send(Method::GET, path, "", None).await?;
        Ok(list["items"]
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default())
    }

    /// An answer that is no JSON.
    pub async fn text(&self, path: &str) -> Result<String> {
        let request = Request::builder().uri(path).body(Vec::new())?;
        let call = self.client.request_text(request);
        Ok(tokio::time::timeout(LIMIT, call).await??)
    }

    /// Creates an object.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::POST, path, "application/json", Some(body))
            .await
    }

    /// Replaces an object.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::PUT, path, "application/json", Some(body))
            .await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            Some(body),
        )
        .await
    }

    /// Applies an object as the field manager `someone`, by force.
    pub async fn apply(&self, path: &str, body: &Value) -> Result<Value> {
        let path = format!("{path}?fieldManager=someone&force=true");
        self.send(
            Method::PATCH,
            &path,
            "application/apply-patch+yaml",
            Some(body),
        )
        .await
    }

    /// Deletes an object; one that is not there is fine.
    pub async fn delete(&self, path: &str) -> Result<()> {
        match self.send(Method::DELETE, path, "", None).await {
            Err(error) if failure(&error).is_none_or(|f| f.status != StatusCode::NOT_FOUND) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("Content-Type", kind);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let call = async {
            let answer = self
                .client
                .send(request.body(Body::from(body.into_bytes()))?)
                .await?;
            let status = answer.status();
            let bytes = answer.into_body().collect_bytes().await?;
            anyhow::Ok((status, bytes))
        };
        let (status, bytes) = tokio::time::timeout(LIMIT, call).await??;
        let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().map(str::to_owned);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned());
        Err(Failure { status, message }.into())
    }
}

/// The apiserver's answer in an error.
fn failure(error: &anyhow::Error) -> Option<&Failure> {
    error.downcast_ref()
}

/// A condition in an object's status.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == kind)
}

/// Whether an object's condition `Ready` is true.
pub fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|c| c["status"] == "True")
}
