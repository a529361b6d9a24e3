//! The front door of the Air Traffic Controller: bring one instance to its desired state and say how it went.
