//! The words of the Air Traffic Controller: custom resource types, resource references, conditions, label and annotation names, and the port through which flights look things up.
