//! Make a Kubernetes cluster hold exactly these resources, with history: parse, decorate, plan, apply, prune, judge readiness, keep revisions.
