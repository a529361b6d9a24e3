use std::sync::{Arc, Mutex};

use atc_api::Account;
use kube::config::AuthInfo;

use super::super::answering::answering;
use super::super::{Cluster, ClusterOptions, Mapping};

/// A server that knows no object, and the lines of the last request that say whom it is made as.
async fn serve() -> (String, Arc<Mutex<Vec<String>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = said.clone();
    let answer = move |head: &str| {
        let lines = head.lines().filter(|line| line.starts_with("impersonate-"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort_unstable();
        *log.lock().unwrap() = lines;
        (
            404,
            r#"{"kind":"Status","code":404,"reason":"NotFound","details":{"name":"a","kind":"configmaps"}}"#,
        )
    };
    (answering(answer).await, said)
}

#[tokio::test]
async fn a_call_as_a_service_account_has_nothing_of_whom_the_kubeconfig_says() {
    let (url, said) = serve().await;
    let mapping = Mapping {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    };
    let words = |text: &str| Some(text.to_owned());
    let whole = AuthInfo {
        impersonate: words("boss"),
        impersonate_uid: words("7"),
        impersonate_groups: Some(vec!["system:masters".into(), "x".into()]),
        impersonate_user_extra: Some([("why".to_owned(), vec!["y".to_owned()])].into()),
        ..AuthInfo::default()
    };
    let groups = AuthInfo {
        impersonate_groups: Some(vec!["system:masters".into()]),
        ..AuthInfo::default()
    };
    let all = [
        "impersonate-extra-why: y",
        "impersonate-group: system:masters",
        "impersonate-group: x",
        "impersonate-uid: 7",
        "impersonate-user: boss",
    ];
    for (auth, ours) in [
        (AuthInfo::default(), &[][..]),
        (groups, &all[1..2]),
        (whole, &all[..]),
    ] {
        let mut config = kube::Config::new(url.parse().unwrap());
        config.auth_info = auth;
        let cluster = Cluster::connect(config, ClusterOptions::default()).unwrap();
        let ask = async |cluster: &Cluster| {
            assert_eq!(cluster.get(&mapping, "n", "a").await.unwrap(), None);
            std::mem::take(&mut *said.lock().unwrap())
        };
        assert_eq!(ask(&cluster).await, ours);
        let account = cluster.acting_as(Account::named("weak", "n").unwrap());
        let theirs = ["impersonate-user: system:serviceaccount:n:weak"];
        assert_eq!(ask(&account).await, theirs);
        assert_eq!(ask(&account.reviewing()).await, theirs);
        assert_eq!(ask(&cluster).await, ours);
    }
}
