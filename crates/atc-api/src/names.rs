//! Every label, annotation, finalizer, field manager and environment variable that users see, with where it stands.
//!
//! They are those of the existing tool, so that its objects and releases are ours too. Names of our own begin with
//! `atc.yoke.cd/`.

/// API group of Airway, Flight and ClusterFlight.
pub const GROUP: &str = "yoke.cd";
/// Their only version.
pub const VERSION: &str = "v1alpha1";

/// Label on every child: who manages it (one of the `MANAGED_BY_*` values).
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL_MANAGED_BY`] for releases of the command line.
pub const MANAGED_BY_YOKE: &str = "yoke";
/// Value of [`LABEL_MANAGED_BY`] for releases of the controller.
pub const MANAGED_BY_ATC: &str = "atc.yoke";
/// Annotation on every child: the release's name.
pub const ANNOTATION_RELEASE: &str = "instance.atc.yoke.cd/release";
/// Annotation on every child: the release's target namespace.
pub const ANNOTATION_NAMESPACE: &str = "instance.atc.yoke.cd/namespace";
/// Annotation on children of an Airway's instance: `namespace/Kind.group:name` of the instance.
pub const ANNOTATION_INSTANCE_REF: &str = "instance.atc.yoke.cd/instanceRef";
/// Annotation on what a Flight made outside of any namespace, where no owner reference to it can stand: the Flight's uid.
/// Ours; the existing tool has no Flights that may do so.
pub const ANNOTATION_FLIGHT: &str = "atc.yoke.cd/flight";
/// Old label that named the release; still read as ownership.
pub const LABEL_OLD_RELEASE: &str = "app.kubernetes.io/yoke-release";
/// Old label that named the release's namespace; still read as ownership.
pub const LABEL_OLD_NAMESPACE: &str = "app.kubernetes.io/yoke-release-namespace";

/// Annotation on an instance: a module URL that replaces the Airway's.
pub const ANNOTATION_OVERRIDE_FLIGHT: &str = "overrides.yoke.cd/flight";
/// Annotation on an instance: a mode that replaces the Airway's.
pub const ANNOTATION_OVERRIDE_MODE: &str = "overrides.yoke.cd/mode";

/// Finalizer on an Airway: its CRD is removed first.
pub const FINALIZER_AIRWAY: &str = "yoke.cd/strip.airway";
/// Finalizer on an instance and on a Flight: its children are removed first.
pub const FINALIZER_INSTANCE: &str = "yoke.cd/mayday.flight";

/// Field manager of children, revisions and CRDs.
pub const MANAGER_YOKE: &str = "yoke";
/// Field manager of status, finalizers and webhook configurations.
pub const MANAGER_ATC: &str = "yoke.cd/atc";
/// Field manager of dry runs by which the atc sees whether its webhook for resources is in force.
pub const MANAGER_PROBE: &str = "yoke.cd/probe";

/// Label on a release Secret: what it holds (`revision`, `lock`).
pub const LABEL_KIND: &str = "internal.yoke/kind";
/// Value of [`LABEL_KIND`] for a revision.
pub const KIND_REVISION: &str = "revision";
/// Value of [`LABEL_KIND`] for a lock.
pub const KIND_LOCK: &str = "lock";
/// Label on a release Secret: hex SHA-1 of the release's full name.
pub const LABEL_RELEASE: &str = "internal.yoke/release";
/// Annotation on a revision: when it was made (RFC 3339 with nanoseconds).
pub const ANNOTATION_CREATED_AT: &str = "internal.yoke/created-at";
/// Annotation on a revision: when it was last made the active one.
pub const ANNOTATION_ACTIVE_AT: &str = "internal.yoke/active-at";
/// Annotation on a revision: how many resources it holds.
pub const ANNOTATION_RESOURCES: &str = "internal.yoke/resources";
/// Annotation on a revision: where its module came from.
pub const ANNOTATION_SOURCE_URL: &str = "internal.yoke/source-url";
/// Annotation on a revision: hex SHA-1 of its module.
pub const ANNOTATION_SOURCE_CHECKSUM: &str = "internal.yoke/source-checksum";
/// Annotation on a revision: the release's full name.
pub const ANNOTATION_RELEASE_NAME: &str = "internal.yoke/release-name";
/// Annotation on a lock and on an intent: who holds it, in words for a person. Ours; locks of the existing tool have none.
pub const ANNOTATION_HOLDER: &str = "atc.yoke.cd/holder";
/// Annotation on a lock and on an intent: a random word that tells one taking of it from another.
pub const ANNOTATION_LOCK: &str = "atc.yoke.cd/lock";
/// Annotation on a lock and on an intent: when its holder last said that it is still there (RFC 3339).
pub const ANNOTATION_RENEWED_AT: &str = "atc.yoke.cd/renewed-at";
/// Annotation on an intent: since when it is held (RFC 3339).
pub const ANNOTATION_HELD_SINCE: &str = "atc.yoke.cd/held-since";
/// Annotation on an intent: the holder's process, for others on the same machine. On a webhook configuration: the stamp
/// of the atc that wrote it last, a number and a random word (`3-5f0c…`); the larger one began later.
pub const ANNOTATION_PROCESS: &str = "atc.yoke.cd/process";
/// On an instance that could not be converted to the version it is read in: why. Never stored.
pub const ANNOTATION_UNCONVERTED: &str = "atc.yoke.cd/unconverted";
/// Annotation on an intent: the release's full name.
pub const ANNOTATION_INTENT_OF: &str = "atc.yoke.cd/release-name";
/// Label on a Secret of ours that is no revision and no lock: what it holds (`intent`, …).
pub const LABEL_OUR_KIND: &str = "atc.yoke.cd/kind";
/// Value of [`LABEL_OUR_KIND`] for the certificate that the atc makes itself.
pub const KIND_CERTIFICATE: &str = "certificate";
/// Value of [`LABEL_OUR_KIND`] for an intent.
pub const KIND_INTENT: &str = "intent";
/// Value of [`LABEL_OUR_KIND`] for a renewal beside an intent, by a holder who may not write over that.
pub const KIND_BEAT: &str = "beat";
/// Data key of an intent that holds the gzipped JSON of its inventory.
pub const KEY_INVENTORY: &str = "inventory";
/// Data key of a revision Secret that holds the gzipped JSON of its stages.
pub const KEY_RESOURCES: &str = "resources";

/// The Airway that a CustomResourceDefinition was made for: it is known by that when somebody takes its owner off.
pub const ANNOTATION_AIRWAY: &str = "atc.yoke.cd/airway";
/// The webhook configuration by which the atc reviews Airways.
pub const WEBHOOK_AIRWAYS: &str = "atc-airway";
/// The webhook configuration by which the atc asks whether whoever writes a Flight may act as the account that it names.
pub const WEBHOOK_ACCOUNTS: &str = "flight-accounts.yoke.cd";
/// The webhook configuration by which the atc keeps others from changing the resources of instances in mode `static`.
pub const WEBHOOK_RESOURCES: &str = "atc-resources";

/// Label on ConfigMaps that carry custom readiness (`lua` or `conditions`).
pub const LABEL_READINESS: &str = "resource.yoke.cd/readiness";

/// Environment of a flight: the release's name.
pub const ENV_RELEASE: &str = "YOKE_RELEASE";
/// Environment of a flight: the target namespace.
pub const ENV_NAMESPACE: &str = "YOKE_NAMESPACE";
/// Environment of a flight: the target namespace, under its short name.
pub const ENV_NAMESPACE_SHORT: &str = "NAMESPACE";
/// Environment of a flight: the host's version, see [`HOST_VERSION`].
pub const ENV_VERSION: &str = "YOKE_VERSION";
/// What [`ENV_VERSION`] says: flights written for the existing tool compare it as a Go semver and refuse older hosts.
/// It names the release of the existing tool whose behaviour is offered, not our own version.
pub const HOST_VERSION: &str = "v0.20.12";
