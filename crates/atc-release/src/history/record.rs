//! The bytes in which a Secret keeps the stages of a revision.

use std::io::{Read, Write};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use serde_json::Value;

use super::{HistoryError, MAX_UNPACKED_BYTES};
use crate::object::{Object, Stages};

/// Gzipped JSON of the stages; an empty release is `null`, as the existing tool writes it. Equal stages give equal bytes.
pub fn pack(stages: &Stages) -> Result<Vec<u8>, std::io::Error> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::default());
    if stages.is_empty() {
        writer.write_all(b"null")?;
    } else {
        serde_json::to_writer(&mut writer, stages)?;
    }
    writer.finish()
}

/// Reads what [`pack`] wrote, or plain JSON; a flat list is one stage. `secret` is named in errors; content never is.
pub fn unpack(secret: &str, bytes: &[u8]) -> Result<Stages, HistoryError> {
    let content = |why: String| HistoryError::Content {
        secret: secret.to_owned(),
        why,
    };
    let mut plain = Vec::new();
    let json = if bytes.starts_with(&[0x1f, 0x8b]) {
        let unpack = |source| HistoryError::Unpack {
            secret: secret.to_owned(),
            source,
        };
        MultiGzDecoder::new(bytes)
            .take(MAX_UNPACKED_BYTES + 1)
            .read_to_end(&mut plain)
            .map_err(unpack)?;
        if plain.len() as u64 > MAX_UNPACKED_BYTES {
            return Err(content(format!(
                "it unpacks to more than {MAX_UNPACKED_BYTES} bytes"
            )));
        }
        &plain
    } else {
        bytes
    };
    let value: Value = serde_json::from_slice(json).map_err(|error| {
        content(format!(
            "no JSON at line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    let stages = match value {
        Value::Null => Vec::new(),
        // Of one stage, as it was written before there were any.
        Value::Array(objects) if objects.iter().any(Value::is_object) => vec![objects.into()],
        Value::Array(stages) => stages,
        _ => return Err(content("it is another JSON value".to_owned())),
    };
    let mut result = Vec::with_capacity(stages.len());
    for (index, stage) in stages.into_iter().enumerate() {
        let objects = match stage {
            Value::Null => Vec::new(),
            Value::Array(objects) => objects,
            _ => return Err(content(format!("stage {} is no list", index + 1))),
        };
        // Typed programs print nothing as null.
        let objects = objects.into_iter().filter(|object| !object.is_null());
        let objects: Result<Vec<Object>, _> = objects.map(Object::try_from).collect();
        let mut objects =
            objects.map_err(|error| content(format!("stage {}: {error}", index + 1)))?;
        // The existing tool records what typed programs print of it: it is nothing that a release says.
        objects.iter_mut().for_each(Object::strip_server_fields);
        result.push(objects);
    }
    Ok(Stages::new(result))
}
