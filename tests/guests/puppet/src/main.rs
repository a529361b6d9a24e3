//! A flight that does what its input says: the `spec` of an instance, or the whole input where that is no instance.
//!
//! Without any word of what to print it makes one ConfigMap, named after the instance, with what it was told.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use yoke_sdk::{Result, Value, input_bytes, json, lookup_as, parse_input};

/// What to do, in this order.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Script {
    /// Sleep for so long first.
    sleep_ms: u64,
    /// Say this on stderr and exit with 1, having printed nothing.
    fail: Option<String>,
    /// Panic with these words, having printed nothing.
    panic: Option<String>,
    /// Look these up. `${NAME}` in what is printed is the value that was found, `${labels.KEY}` that of the instance's label.
    look: Vec<Look>,
    /// Print these resources; one that is `{"when": NAME, "object": …}` only if the look-up of that name found something.
    objects: Option<Vec<Value>>,
    /// Print these stages instead.
    stages: Option<Vec<Value>>,
    /// Print the instance with this status as well.
    status: Option<Value>,
    /// Print this text and nothing else.
    raw: Option<String>,
    /// Print these bytes after it.
    bytes: Vec<u8>,
    /// After printing, say this on stderr and exit with 1.
    exit: Option<String>,
    /// The same if a value that was looked up is this one.
    exit_if: BTreeMap<String, String>,
    /// Goes into the ConfigMap.
    note: String,
    /// The same; a `scale` subresource may set it.
    replicas: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Look {
    name: String,
    #[serde(default = "core")]
    api_version: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    object: String,
    /// Where in the object, keys joined by dots.
    path: String,
    /// The value where there is no such object or field.
    #[serde(default)]
    default: String,
}

fn core() -> String {
    "v1".into()
}

/// The instance, and its values.
struct Puppet {
    input: Value,
    script: Script,
    values: BTreeMap<String, String>,
    /// Names of the look-ups that found an object.
    found: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let bytes = input_bytes()?;
    let input: Value = if bytes.is_empty() {
        Value::Null
    } else {
        parse_input(&bytes)?
    };
    let script = if input["metadata"].is_null() {
        &input
    } else {
        &input["spec"]
    };
    let script: Script = if script.is_null() {
        Script::default()
    } else {
        Script::deserialize(script)?
    };
    let mut puppet = Puppet {
        values: BTreeMap::new(),
        found: Vec::new(),
        input,
        script,
    };
    sleep(Duration::from_millis(puppet.script.sleep_ms));
    if let Some(words) = &puppet.script.fail {
        eprintln!("{words}");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(words) = &puppet.script.panic {
        panic!("{words}");
    }
    puppet.look()?;
    let mut stdout = std::io::stdout().lock();
    match &puppet.script.raw {
        Some(raw) => stdout.write_all(puppet.fill(raw).as_bytes())?,
        None => stdout.write_all(puppet.output().to_string().as_bytes())?,
    }
    stdout.write_all(&puppet.script.bytes)?;
    stdout.flush()?;
    Ok(puppet.end())
}

impl Puppet {
    fn look(&mut self) -> Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        self.values.insert("now".into(), now.as_nanos().to_string());
        self.values.insert("name".into(), self.name());
        self.values
            .insert("replicas".into(), self.script.replicas.to_string());
        self.values
            .insert("namespace".into(), yoke_sdk::namespace());
        for map in ["labels", "annotations"] {
            let entries = self.input["metadata"][map].as_object();
            for (key, value) in entries.into_iter().flatten() {
                let value = value.as_str().unwrap_or_default();
                self.values.insert(format!("{map}.{key}"), value.into());
            }
        }
        for look in &self.script.look {
            let object: Option<Value> =
                lookup_as(&look.api_version, &look.kind, &look.namespace, &look.object)?;
            let field = object.as_ref().and_then(|object| {
                look.path
                    .split('.')
                    .try_fold(object, |value, key| value.get(key))
            });
            let value = match field {
                None | Some(Value::Null) => look.default.clone(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            if object.is_some() {
                self.found.push(look.name.clone());
            }
            self.values.insert(look.name.clone(), value);
        }
        Ok(())
    }

    /// The instance's name, else the release's.
    fn name(&self) -> String {
        match self.input["metadata"]["name"].as_str() {
            Some(name) => name.to_owned(),
            None => yoke_sdk::release(),
        }
    }

    fn output(&self) -> Value {
        if let Some(stages) = &self.script.stages {
            return self.filled(&Value::from(stages.clone()));
        }
        let mut output = match &self.script.objects {
            Some(objects) => objects
                .iter()
                .filter_map(|object| self.wanted(object))
                .collect(),
            None => vec![self.told()],
        };
        if let Some(status) = &self.script.status {
            let input = &self.input;
            output.push(json!({
                "apiVersion": input["apiVersion"],
                "kind": input["kind"],
                "metadata": { "name": input["metadata"]["name"], "namespace": input["metadata"]["namespace"] },
                "status": self.filled(status),
            }));
        }
        output.into()
    }

    fn wanted(&self, object: &Value) -> Option<Value> {
        let Some(when) = object["when"].as_str() else {
            return Some(self.filled(object));
        };
        self.found
            .iter()
            .any(|found| found == when)
            .then(|| self.filled(&object["object"]))
    }

    /// A ConfigMap of what the host says.
    fn told(&self) -> Value {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": self.name() },
            "data": {
                "note": self.script.note,
                "replicas": self.script.replicas.to_string(),
                "release": yoke_sdk::release(),
                "namespace": yoke_sdk::namespace(),
                "version": yoke_sdk::version(),
                "arguments": arguments.join(","),
            },
        })
    }

    /// With the values in its texts, keys left alone.
    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(list) => list.iter().map(|value| self.filled(value)).collect(),
            Value::Object(map) => {
                let entries = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.filled(value)));
                Value::Object(entries.collect())
            }
            other => other.clone(),
        }
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.values {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        text
    }

    fn end(&self) -> ExitCode {
        let told = self.script.exit.clone();
        let hit = self
            .script
            .exit_if
            .iter()
            .find(|(name, value)| self.values.get(*name) == Some(value));
        match told.or_else(|| hit.map(|(name, value)| format!("{name} is {value}"))) {
            None => ExitCode::SUCCESS,
            Some(words) => {
                eprintln!("{words}");
                ExitCode::FAILURE
            }
        }
    }
}
