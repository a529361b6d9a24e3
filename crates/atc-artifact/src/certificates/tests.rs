use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[test]
fn folders_are_docker_s_then_podman_s() {
    let of = |certificates: &Certificates, set: &'static [(&str, &str)]| {
        let found = certificates.folders(|name| {
            let value = set.iter().find(|(key, _)| *key == name);
            value.map(|(_, value)| value.into())
        });
        let shown = found.iter().map(|path| path.display().to_string());
        shown.collect::<Vec<_>>()
    };
    let system = ["/etc/containers/certs.d", "/etc/docker/certs.d"];
    assert_eq!(of(&Certificates::User, &[]), system);
    assert_eq!(
        of(&Certificates::User, &[("HOME", "/h")])[..2],
        ["/h/.docker/certs.d", "/h/.config/containers/certs.d"]
    );
    assert_eq!(
        of(
            &Certificates::User,
            &[("HOME", "/h"), ("DOCKER_CONFIG", "/d")]
        )[0],
        "/d/certs.d"
    );
    assert_eq!(
        of(&Certificates::Folder("/f".into()), &[("HOME", "/h")]),
        ["/f"]
    );
    assert!(of(&Certificates::None, &[("HOME", "/h")]).is_empty());
}

#[test]
fn folders_of_a_host_are_named_as_it_is_asked() {
    assert_eq!(
        names(&url("https://Reg.example/v2/")),
        ["reg.example", "reg.example:443"]
    );
    assert_eq!(
        names(&url("https://reg.example:5000/v2/")),
        ["reg.example:5000"]
    );
    assert_eq!(names(&url("https://[::1]:5000/")), ["[::1]:5000"]);
    assert!(
        names(&url("http://reg.example:5000/")).is_empty(),
        "no key goes over plain http"
    );
    for odd in ["https://../v2/", "https://./"] {
        assert!(
            odd.parse::<Url>().is_ok_and(|url| names(&url).is_empty())
                || odd.parse::<Url>().is_err()
        );
    }
}

#[test]
fn half_pairs_and_other_files_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("h:5000");
    let find = || Certificates::Folder(dir.path().to_owned()).find(&url("https://h:5000/"));
    assert!(find().unwrap().is_none());
    std::fs::create_dir(&folder).unwrap();
    let check = |files: &[(&str, &str)], words: &str| {
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let applied = find().and_then(|files| files.unwrap().apply(reqwest::Client::builder()));
        let error = applied.map(drop).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        for (name, _) in files {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
    };
    check(
        &[("client.cert", "x")],
        "client.key' for the client certificate",
    );
    check(&[("client.key", "x")], "client.cert' for the key");
    check(
        &[("client.cert", "x"), ("client.key", "y")],
        "no certificate and its key",
    );
    check(&[("ca.crt", "x")], "no certificate in PEM");
    let large = "x".repeat(1 << 20);
    check(&[("a.crt", "x"), ("b.crt", &large)], "more than");
    let many: Vec<String> = (0..=MAX_CERTIFICATE_FILES)
        .map(|nth| format!("{nth}.txt"))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    check(&many, "more than");
    // What is none of these is left alone.
    std::fs::write(folder.join("README"), "x").unwrap();
    let files = find().unwrap().unwrap();
    assert!(files.apply(reqwest::Client::builder()).is_ok() && files.pair().is_none());
}

#[test]
fn what_changes_is_told_from_what_was_before() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("h");
    std::fs::create_dir(&folder).unwrap();
    let digest = || {
        let found = Certificates::Folder(dir.path().to_owned()).find(&url("https://h/"));
        found.unwrap().unwrap().digest
    };
    let empty = digest();
    std::fs::write(folder.join("client.key"), "a").unwrap();
    let first = digest();
    std::fs::write(folder.join("client.key"), "b").unwrap();
    assert!(empty != first && first != digest());
}
