//! The Ready condition.
