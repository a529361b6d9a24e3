//! Airway: which flight makes the resources of a custom resource.
