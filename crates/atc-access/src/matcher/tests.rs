use super::*;
use proptest::prelude::*;

fn check(matcher: &str, target: &str, expect: bool) {
    let target: ResourceRef = target.parse().unwrap();
    assert_eq!(
        Matcher::from(matcher).matches(&target),
        expect,
        "{matcher:?} against {target}"
    );
}

/// The fifteen rows that the existing tool tests, against Deployment.apps `test` in `foo`.
#[test]
fn rows_of_the_existing_tool() {
    let check = |matcher, expect| check(matcher, "foo/Deployment.apps:test", expect);
    check("*", true);
    check("foo/Deployment.apps:test", true);
    check("Deployment.apps:test", true);
    check("Deployment.apps", true);
    check("*/*", true);
    check("*/Deployment.apps", true);
    check("foo/Deployment.apps:*", true);
    check("*/Deployment.apps:*", true);
    check("", false);
    check("/", false);
    check("Deployment", false);
    check("bar/Deployment.apps", false);
    check("Deployment.custom:test", false);
    check("Deployment.apps:other", false);
    check("bar/*", false);
}

#[test]
fn core_kinds_have_no_dot() {
    check("Secret", "foo/Secret:db", true);
    check("foo/Secret", "foo/Secret:db", true);
    check("Secret:db", "foo/Secret:db", true);
    check("Secret.", "foo/Secret:db", false);
    check("Secret.core", "foo/Secret:db", false);
    check("Secret", "foo/Secret.other.dev:db", false);
    check("Secret.other", "foo/Secret.other.dev:db", false);
    check("Secret.other.dev", "foo/Secret.other.dev:db", true);
    check("Secret.v1", "foo/Secret:db", false);
}

#[test]
fn case_counts_and_globs_are_whole_parts() {
    check("infra/Configmap:global", "infra/ConfigMap:global", false);
    check("infra/configmap", "infra/ConfigMap:global", false);
    check("infra/*:global", "infra/ConfigMap:global", true);
    check("infra/*:other", "infra/ConfigMap:global", false);
    check("inf*/ConfigMap", "infra/ConfigMap:global", false);
    check("ConfigMap:glob*", "infra/ConfigMap:global", false);
    check("*.apps", "infra/Deployment.apps:web", false);
    check("Deployment.*", "infra/Deployment.apps:web", false);
    check("**", "infra/ConfigMap:global", false);
    check(" ConfigMap", "infra/ConfigMap:global", false);
    check("ConfigMap ", "infra/ConfigMap:global", false);
    check("*/ConfigMap,*/Secret", "infra/ConfigMap:global", false);
}

#[test]
fn empty_parts_fit_nothing_but_cluster_scope() {
    check("foo/", "foo/ConfigMap:a", false);
    check(":a", "foo/ConfigMap:a", false);
    check("foo/:a", "foo/ConfigMap:a", false);
    check("ConfigMap:", "foo/ConfigMap:a", false);
    check("/ConfigMap", "foo/ConfigMap:a", false);
    check("/Namespace", "/Namespace:a", true);
    check("Namespace", "/Namespace:a", true);
    check("*/Namespace", "/Namespace:a", true);
    check("*", "/Namespace:a", true);
    check("default/Namespace", "/Namespace:a", false);
    check("default/*", "/Namespace:a", false);
}

#[test]
fn cuts_at_the_first_slash_and_the_first_colon() {
    check(
        "ClusterRole.rbac.authorization.k8s.io:system:node",
        "/ClusterRole.rbac.authorization.k8s.io:system:node",
        true,
    );
    check(
        "ClusterRole.rbac.authorization.k8s.io:system",
        "/ClusterRole.rbac.authorization.k8s.io:system:node",
        false,
    );
    check("foo/bar/ConfigMap", "foo/ConfigMap:a", false);
    check("foo:ConfigMap", "foo/ConfigMap:a", false);
    check("ConfigMap:a/b", "ConfigMap:a/ConfigMap:a", false);
}

/// An object without kind or name is none: nothing covers it, not even `*`.
#[test]
fn no_object_no_match() {
    for matcher in ["", "/", "*", "*/*:*", ":", "/:", "*/:"] {
        assert!(
            !Matcher::from(matcher).matches(&ResourceRef::default()),
            "{matcher:?}"
        );
        assert!(
            !Matcher::from(matcher).matches(&ResourceRef::new("a", "", "Secret", "")),
            "{matcher:?}"
        );
        assert!(
            !Matcher::from(matcher).matches(&ResourceRef::new("a", "", "", "b")),
            "{matcher:?}"
        );
    }
}

#[test]
fn lists() {
    let target = "foo/Secret:db".parse().unwrap();
    let texts = |matchers: &Matchers| matchers.iter().map(Matcher::to_string).collect::<Vec<_>>();
    let flags = Matchers::from_flags(["default/*, foo/*", "Secret", "", " , "]);
    assert_eq!(texts(&flags), ["default/*", "foo/*", "Secret"]);
    assert!(flags.matches(&target));
    let items: Matchers = ["default/*,foo/*", " Secret"].into_iter().collect();
    assert_eq!(texts(&items), ["default/*,foo/*", " Secret"]);
    assert!(!items.matches(&target));
    assert!(!Matchers::default().matches(&target));
}

prop_compose! {
    /// Names as Kubernetes has them, colons in names included.
    pub(crate) fn any_reference()(
        namespace in "[a-z]{0,3}", group in "([a-z]{1,3}(\\.[a-z]{1,2})?)?", kind in "[A-Z][a-zA-Z]{0,3}",
        name in "[a-z0-9][a-z0-9.:-]{0,5}",
    ) -> ResourceRef {
        ResourceRef::new(namespace, group, kind, name)
    }
}

proptest! {
    #[test]
    fn printing_then_parsing_is_identity(text in "[a-zA-Z*./:]{0,12}") {
        let matcher = Matcher::from(text.as_str());
        prop_assert_eq!(&matcher.to_string(), &text);
        prop_assert_eq!(Matcher::from(matcher.to_string().as_str()), matcher);
    }

    #[test]
    fn a_reference_written_out_fits_itself_alone(one in any_reference(), other in any_reference()) {
        let matcher = Matcher::from(one.to_string().as_str());
        prop_assert!(matcher.matches(&one));
        prop_assert_eq!(matcher.matches(&other), one == other);
    }

    #[test]
    fn a_star_for_a_part_only_widens(one in any_reference(), other in any_reference()) {
        let wide = [
            format!("*/{}:{}", one.group_kind, one.name),
            format!("{}/*:{}", one.namespace, one.name),
            format!("{}/{}:*", one.namespace, one.group_kind),
            format!("{}/{}", one.namespace, one.group_kind),
        ];
        let fits = [
            one.group_kind == other.group_kind && one.name == other.name,
            one.namespace == other.namespace && one.name == other.name,
            one.namespace == other.namespace && one.group_kind == other.group_kind,
            one.namespace == other.namespace && one.group_kind == other.group_kind,
        ];
        for (text, fits) in wide.iter().zip(fits) {
            let matcher = Matcher::from(text.as_str());
            prop_assert!(matcher.matches(&one));
            prop_assert_eq!(matcher.matches(&other), fits, "{} {}", text, other);
        }
    }

    #[test]
    fn any_text_is_survived(text: String, target in any_reference()) {
        let _ = Matcher::from(text.as_str()).matches(&target);
    }
}

#[test]
fn what_can_match_nothing_is_known() {
    for text in [
        "*",
        "*/*",
        "Secret",
        "team/Secret:db",
        "Deployment.apps",
        "*/Certificate.cert-manager.io:*",
        "ClusterRole.rbac.authorization.k8s.io:system:node",
        "/Namespace",
        "Configmap",
    ] {
        assert!(Matcher::from(text).can_match(), "{text}");
    }
    for text in [
        "",
        "/",
        "Sec ret",
        "a/b/c",
        "Secret:",
        "Secret:db-*",
        "Conf*",
        ".apps",
        "Deployment.",
        "a b/Secret",
    ] {
        assert!(!Matcher::from(text).can_match(), "{text}");
    }
}

#[test]
fn an_object_is_named_by_its_matcher() {
    let check = |namespace: &str, group: &str, kind: &str, name: &str, expect: &str| {
        let target = ResourceRef::new(namespace, group, kind, name);
        assert_eq!(naming(&target), expect);
        assert!(Matcher::from(expect).matches(&target), "{expect}");
    };
    check("team", "", "Secret", "db", "team/Secret:db");
    check("", "", "Node", "one", "Node:one");
    let (group, role) = (
        "rbac.authorization.k8s.io",
        "team/Role.rbac.authorization.k8s.io:a:b",
    );
    check("team", group, "Role", "a:b", role);
}
