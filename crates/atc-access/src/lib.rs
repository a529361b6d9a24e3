//! May this flight read that, and what has it read: resource access matchers, the policy that decides, the ledger of what was read, and the host functions on top.
