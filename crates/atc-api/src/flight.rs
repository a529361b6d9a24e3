//! Flight and ClusterFlight.
