//! Make a Kubernetes cluster hold exactly these resources, with history: parse, decorate, plan, apply, prune, judge readiness, keep revisions.

pub mod cluster;
pub mod decorate;
pub mod desired;
pub mod drift;
pub mod history;
pub mod object;
pub mod ownership;
pub mod plan;
pub mod readiness;
