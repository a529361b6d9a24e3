//! A Lua script that says whether an object is ready: run anew for each object, within bounds of time and memory.
//!
//! The script is the text of a Lua 5.4 chunk that returns a function; the function is called with the object and returns
//! `true`, `false` or nothing, which is `false`. Scripts come from whoever may write ConfigMaps, so none of them is
//! trusted:
//!
//! - There is no `io`, `os`, `load`, `require`, `debug`, `coroutine` or `collectgarbage`; and no metatables, which would
//!   let native loops of the library run for ever, and finalizers run where no hook sees them.
//! - Only text is loaded, no bytecode.
//! - After [`INSTRUCTIONS`], or [`TIME`] by the clock, each further instruction fails: a `pcall` of the script's own gets
//!   no further than the next one, so everything unwinds.
//! - Native functions that call back into the script stand within each other a few times only.
//! - Lua may allocate [`MEMORY`] bytes.
//! - The library's pattern matching, which is native code, is replaced by one that counts its steps.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::chunk::ChunkMode;
use mlua::serde::SerializeOptions;
use mlua::{Function, HookTriggers, Lua, LuaOptions, LuaSerdeExt, StdLib, Value, VmState};

mod library;
mod pattern;

use pattern::Steps;

/// Bytes of a script: a page of code is 4 KiB.
pub const TEXT_MAX: usize = 64 * 1024;
/// Bytes that a run may allocate. An object of 1.5 MiB, the most that etcd takes, becomes tables of about 10 MiB.
pub const MEMORY: usize = 16 * 1024 * 1024;
/// Lua instructions of a run, about 0.1 s: a look at each field of a large object takes some 100,000.
pub const INSTRUCTIONS: u64 = 10_000_000;
/// Steps of pattern matching of a run, about 0.1 s.
pub const STEPS: u64 = 10_000_000;
/// Time of a run by the clock. The counts above end it first, and in the same way each time; this is for native code that
/// they do not see, such as the sorting of a long list.
pub const TIME: Duration = Duration::from_secs(1);
/// Instructions between two looks at the counts and the clock: less than a microsecond of Lua.
const TICK: u32 = 64;
/// Bytes for ending a run that is over its budget and has used up its memory.
const RESERVE: usize = 1024 * 1024;
/// Characters of a script's own error that are repeated.
const WORDS_MAX: usize = 300;

/// Why a script gives no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The script is too long.
    #[error("it has {size} bytes, at most {TEXT_MAX} are read")]
    Long {
        /// Its bytes.
        size: usize,
    },
    /// It is no Lua.
    #[error("it is no Lua: {0}")]
    Syntax(String),
    /// It is not a chunk that returns a function.
    #[error("it returns a {found}, where it must return a function")]
    NoFunction {
        /// What it returned.
        found: &'static str,
    },
    /// The function returned something that is no answer.
    #[error("its function returns a {found}, where it must return true, false or nothing")]
    NoAnswer {
        /// What it returned.
        found: &'static str,
    },
    /// It ran too long.
    #[error("it runs too long: more than {INSTRUCTIONS} instructions, {STEPS} steps of pattern matching, or {} s", TIME.as_secs())]
    Time,
    /// It takes too much memory.
    #[error("it takes more than {} MiB of memory", MEMORY / 1024 / 1024)]
    Memory,
    /// It raised an error.
    #[error("it fails: {0}")]
    Failed(String),
}

/// The text of a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Script {
    name: Arc<str>,
    text: Arc<str>,
}

impl Script {
    /// The script of this text, under the name that its errors bear.
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }

    /// What it says.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Asks it about an object. Blocks the thread for [`TIME`] at most, and a little more where a native function of the
    /// library is on its way then.
    pub fn is_ready(&self, object: &serde_json::Value) -> Result<bool, ScriptError> {
        if self.text.len() > TEXT_MAX {
            return Err(ScriptError::Long {
                size: self.text.len(),
            });
        }
        let budget = Rc::new(Budget::new());
        let answer = self.ask(object, &budget);
        // Whatever the script made of it, or whatever it broke.
        if budget.is_used_up() {
            return Err(ScriptError::Time);
        }
        answer
    }

    fn ask(&self, object: &serde_json::Value, budget: &Rc<Budget>) -> Result<bool, ScriptError> {
        let lua = machine(budget).map_err(failed)?;
        let options = SerializeOptions::new()
            .set_array_metatable(false)
            .serialize_none_to_null(false)
            .serialize_unit_to_null(false);
        let object = lua.to_value_with(object, options).map_err(failed)?;
        let chunk = lua
            .load(&*self.text)
            .set_name(format!("={}", self.name))
            .set_mode(ChunkMode::Text);
        let function = match chunk.call::<Value>(()).map_err(failed)? {
            Value::Function(function) => function,
            other => {
                return Err(ScriptError::NoFunction {
                    found: other.type_name(),
                });
            }
        };
        answer(&function, object)
    }
}

fn answer(function: &Function, object: Value) -> Result<bool, ScriptError> {
    match function.call::<Value>(object).map_err(failed)? {
        Value::Nil => Ok(false),
        Value::Boolean(answer) => Ok(answer),
        other => Err(ScriptError::NoAnswer {
            found: other.type_name(),
        }),
    }
}

/// What a run may still use.
struct Budget {
    instructions: Cell<u64>,
    deadline: Instant,
    steps: Steps,
    /// The hook has begun to fail everything.
    over: Cell<bool>,
    /// Native functions within each other that have called one of the script's.
    depth: Cell<u32>,
}

impl Budget {
    fn new() -> Self {
        Self {
            instructions: Cell::new(INSTRUCTIONS),
            deadline: Instant::now() + TIME,
            steps: Steps::new(STEPS),
            over: Cell::new(false),
            depth: Cell::new(0),
        }
    }

    fn is_used_up(&self) -> bool {
        self.over.get() || self.steps.are_used_up()
    }

    /// Counts a tick; whether the run goes on.
    fn tick(&self) -> bool {
        let left = self.instructions.get().saturating_sub(u64::from(TICK));
        self.instructions.set(left);
        left > 0 && !self.steps.are_used_up() && Instant::now() < self.deadline
    }
}

/// An interpreter with the budget's hook and the library that scripts may use.
fn machine(budget: &Rc<Budget>) -> mlua::Result<Lua> {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
    let lua = Lua::new_with(libraries, LuaOptions::new())?;
    lua.set_memory_limit(MEMORY)?;
    library::restrict(&lua, budget)?;
    let counted = budget.clone();
    lua.set_hook(
        HookTriggers::new().every_nth_instruction(TICK),
        move |lua, _| {
            if counted.tick() {
                return Ok(VmState::Continue);
            }
            counted.over.set(true);
            // From here on each instruction fails, so that no pcall gets any further. The hook itself takes memory, which
            // the script may have used up.
            lua.set_memory_limit(MEMORY + RESERVE)?;
            lua.set_hook(HookTriggers::new().every_nth_instruction(1), |_, _| {
                Err(over())
            })?;
            Err(over())
        },
    )?;
    Ok(lua)
}

fn over() -> mlua::Error {
    mlua::Error::runtime("the run is over its budget")
}

/// An error of Lua's in one bounded line.
fn failed(error: mlua::Error) -> ScriptError {
    match error {
        mlua::Error::SyntaxError { message, .. } => ScriptError::Syntax(line(&message)),
        mlua::Error::MemoryError(_) => ScriptError::Memory,
        mlua::Error::RuntimeError(message) => ScriptError::Failed(line(&message)),
        mlua::Error::CallbackError { cause, .. } => failed((*cause).clone()),
        other => ScriptError::Failed(line(&other.to_string())),
    }
}

/// The first line of a text, without what would steer a terminal.
fn line(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(printable).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests;
