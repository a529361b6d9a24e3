//! Rules of readiness that users write for kinds of their own, in ConfigMaps: conditions that must be True, or a Lua
//! script that is asked.
//!
//! It knows neither the cluster nor what readiness is otherwise: ConfigMaps and objects come in as JSON, out comes what a
//! rule says. Start at [`book`]; then
//!
//! - [`key`]: which kinds a rule is for.
//! - [`rule`]: what is read of a ConfigMap.
//! - [`script`]: a Lua script, run on one object within bounds.

pub mod book;
pub mod key;
pub mod rule;
pub mod script;

pub use book::{Book, BookError, Found};
pub use key::Key;
pub use rule::Rule;
pub use script::{Script, ScriptError};
