//! A converter between two versions: `spec.note` of `v1` is `spec.text` of `v2`, `status.old` is `status.new`.
//!
//! An instance whose text is `fail` can't be converted, one whose text is `meddle` comes back with another name and uid.

use std::process::ExitCode;

use yoke_sdk::{Result, Value, input_bytes, json, parse_input};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut review: Value = parse_input(&input_bytes()?)?;
    let request = review["request"].take();
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let mut converted = Vec::new();
    for mut object in objects {
        let text = object["spec"]["note"]
            .as_str()
            .or(object["spec"]["text"].as_str())
            .unwrap_or_default()
            .to_owned();
        if text == "fail" {
            return Err(format!("{} is not convertible", object["metadata"]["name"]).into());
        }
        if text == "meddle" {
            object["metadata"]["name"] = "else".into();
            object["metadata"]["uid"] = "another".into();
        }
        object["apiVersion"] = wanted.into();
        let forward = wanted.ends_with("/v2");
        for (field, before, after) in [("spec", "note", "text"), ("status", "old", "new")] {
            let (from, to) = if forward { (before, after) } else { (after, before) };
            rename(&mut object[field], from, to);
        }
        converted.push(object);
    }
    let response = json!({
        "uid": request["uid"],
        "convertedObjects": converted,
        "result": { "status": "Success" },
    });
    let answer = json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"], "response": response,
    });
    println!("{answer}");
    Ok(())
}

fn rename(part: &mut Value, from: &str, to: &str) {
    if let Some(fields) = part.as_object_mut()
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
}
