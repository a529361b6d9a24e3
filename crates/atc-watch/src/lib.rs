//! Who must be woken when a Kubernetes object changes, and which kinds must be watched for that: a dependency tracker and a pool of shared metadata watches.
