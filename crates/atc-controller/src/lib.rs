//! Keep all instances of all Airways in their desired state: watches, queues, admission webhooks and the life of an Airway.
