//! `yoke stow`: a module from a file into a registry.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use atc_engine::artifact::{
    Certificates, Credentials, FetchOptions, Fetcher, Location, OciLocation, Pushed, Pusher, Tag,
};
use atc_engine::flight::{Compiler, Runtime, RuntimeOptions};
use atc_engine::release::drift;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::cli::Stow;

/// Pushes it, and reports on stderr where it is.
pub(super) async fn run(args: &Stow) -> anyhow::Result<()> {
    let source: Location = args.file.parse()?;
    if !matches!(source, Location::File(_)) {
        bail!("\"{source}\" is not a local file: stow pushes what lies on this machine");
    }
    let target = target(&args.url, args.insecure)?;
    let tags = args.tag.iter().filter(|tag| !tag.is_empty());
    let tags: Vec<Tag> = tags
        .map(|tag| {
            tag.parse()
                .with_context(|| format!("\"{tag}\" cannot be a tag"))
        })
        .collect::<Result<_, _>>()?;

    let fetcher = Fetcher::new(FetchOptions::default());
    let module = fetcher.fetch(&source, None).await?;
    let runtime = Runtime::new(RuntimeOptions {
        compiler: Compiler::Quick,
        ..RuntimeOptions::default()
    })?;
    let compiled = runtime.module(&module.bytes).await;
    compiled.with_context(|| format!("\"{source}\" is not pushed"))?;

    let bar = bar();
    let sent = bar.clone();
    let pusher = Pusher::new(&FetchOptions {
        credentials: Credentials::User,
        certificates: Certificates::User,
        ..FetchOptions::default()
    });
    let progress = Arc::new(move |bytes| sent.inc(bytes));
    let done = pusher
        .push(&target, module.bytes, &tags, Some(progress))
        .await;
    bar.finish_and_clear();
    report(&done?)
}

/// Where to push to: a repository, in which the URL may name a tag.
fn target(url: &str, insecure: bool) -> anyhow::Result<OciLocation> {
    let location: Location = url.parse()?;
    let Location::Oci(target) = location.clone().with_insecure(insecure) else {
        bail!("\"{location}\" is no registry: it must begin with oci://");
    };
    if target.digest().is_some() {
        bail!("\"{target}\" names a digest, which what is pushed has by itself: name a tag");
    }
    Ok(target)
}

/// How much is sent, where somebody sees it.
fn bar() -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    // The template is fixed, so it is never refused.
    if let Ok(style) =
        ProgressStyle::with_template("{spinner} pushing: {bytes} sent, {bytes_per_sec}")
    {
        bar.set_style(style);
    }
    bar
}

fn report(pushed: &Pushed) -> anyhow::Result<()> {
    let report = words(pushed)?;
    // A closed stderr is no matter: there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(report.as_bytes());
    Ok(())
}

/// As YAML. The URL stays on one line, however long it is: scripts look for it.
fn words(pushed: &Pushed) -> anyhow::Result<String> {
    let rest = json!({ "moduleSHA": pushed.module_sha256, "tags": pushed.tags });
    Ok(format!(
        "digestUrl: {}\n{}",
        pushed.digest_url,
        drift::yaml(&rest)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_yaml_in_short_lines() {
        let url = format!(
            "oci://registry.example.dev/team/app@sha256:{}",
            "a".repeat(64)
        );
        let pushed = Pushed {
            digest_url: url.clone(),
            module_sha256: "b".repeat(64),
            tags: vec!["1.2".to_owned(), "latest".to_owned()],
        };
        let text = words(&pushed).expect("text");
        assert!(
            text.starts_with(&format!("digestUrl: {url}\nmoduleSHA: bbb")),
            "{text}"
        );
        assert!(text.contains("\"1.2\"") || text.contains("'1.2'"), "{text}");
    }

    #[test]
    fn only_tags_of_registries_are_targets() {
        let sum = "0".repeat(64);
        for (url, words) in [
            ("./file.wasm", "no registry"),
            ("https://h.io/app:v1", "no registry"),
            (&format!("oci://h.io/app@sha256:{sum}"), "names a digest"),
            ("oci://h.io/App", "names no artifact"),
        ] {
            let error = target(url, false).expect_err(url);
            assert!(error.to_string().contains(words), "{url}: {error}");
        }
        let error = target("https://joe:secret@h.io/app:v1", false).expect_err("a web server");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        let target = target("oci://h.io/app:v1", true).expect("a target");
        assert!(target.is_insecure() && target.tag() == Some("v1"));
    }
}
