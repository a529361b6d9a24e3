//! The decision: may this run read that object. One function, and what it does not allow is denied.

use atc_api::ResourceRef;

use crate::ledger::ReadKind;
use crate::matcher::Matchers;
use crate::owner::Owner;

/// What one run may read. The default reads nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// Whether it may look into the cluster at all.
    pub enabled: bool,
    /// Whose objects it may read without any matcher: its own release's.
    pub owner: Owner,
    /// Which others it may read.
    pub matchers: Matchers,
    /// Whether nothing outside the owner's namespace may be read, and nothing that gives rights: whoever wrote the
    /// matchers has no rights of the cluster's own.
    pub confined: bool,
}

/// The groups of Roles and RoleBindings.
const RBAC: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];

/// What is known about the object at the time of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live<'a> {
    /// Nothing: it has not been read.
    Unread,
    /// There is no such object.
    Absent,
    /// It is there, and whose it is, if anybody's.
    Present(Option<&'a Owner>),
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The host may read it to find out whose it is; the guest learns nothing yet.
    Undecided,
    /// The guest may have it, and it is recorded as read in this way.
    Granted(ReadKind),
    /// The guest may know that it is not there, and it is recorded as missed in this way.
    Missing(ReadKind),
    /// The guest gets nothing of it, and nothing is recorded.
    Denied(Denial),
}

/// Why a run may not read an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// It has no access to the cluster.
    NotGranted,
    /// The object belongs to another release, or to none, and no matcher covers it.
    Foreign,
}

impl AccessPolicy {
    /// May this object be read?
    ///
    /// | access | live object | a matcher covers it | decision |
    /// | --- | --- | --- | --- |
    /// | off | any | any | denied: not granted |
    /// | on | not read yet | any | undecided |
    /// | on | the run's own | any | granted, own |
    /// | on | somebody else's or nobody's | yes | granted, external |
    /// | on | somebody else's or nobody's | no | denied: foreign |
    /// | on | absent | yes | missing, external |
    /// | on | absent | no | missing, candidate |
    /// | on, confined, and it lies outside | known | any | denied: foreign |
    pub fn decide(&self, target: &ResourceRef, live: Live<'_>) -> Access {
        if !self.enabled {
            return Access::Denied(Denial::NotGranted);
        }
        if live != Live::Unread && !self.reaches(target) {
            return Access::Denied(Denial::Foreign);
        }
        let covered = self.matchers.matches(target);
        match live {
            Live::Unread => Access::Undecided,
            Live::Present(Some(owner)) if owner.is_somebody() && *owner == self.owner => {
                Access::Granted(ReadKind::Own)
            }
            Live::Present(_) if covered => Access::Granted(ReadKind::External),
            Live::Absent if covered => Access::Missing(ReadKind::External),
            Live::Absent => Access::Missing(ReadKind::Candidate),
            Live::Present(_) => Access::Denied(Denial::Foreign),
        }
    }
}

impl AccessPolicy {
    /// Whether an object, named as the API names it, may be read at all, whatever the matchers say.
    pub fn reaches(&self, target: &ResourceRef) -> bool {
        !self.confined
            || (target.namespace == self.owner.namespace
                && !RBAC.contains(&&*target.group_kind.group))
    }
}

#[cfg(test)]
mod tests;
