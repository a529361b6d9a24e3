//! What scripts find in Lua's library: nothing that reaches out, nothing that runs on unseen.

use std::rc::Rc;

use mlua::{
    Error, Function, IntoLuaMulti, Lua, LuaString, MultiValue, Result, Table, Value, Variadic,
};

use super::pattern::{self, Capture, Found, PatternError, Steps};
use super::{Budget, MEMORY};

/// How often native functions that call the script's may stand within each other. Each takes some 20 KiB of the 2 MiB of
/// native stack, and some of the 200 native calls that Lua allows, which the end of a run needs too.
const DEPTH: u32 = 16;
/// Functions that load code, reach out of the script, or give objects a behaviour of their own.
const NO_GLOBALS: [&str; 9] = [
    "collectgarbage",
    "dofile",
    "getmetatable",
    "load",
    "loadfile",
    "require",
    "setmetatable",
    "warn",
    "print",
];
/// Bytecode, and what no question about readiness needs.
const NO_STRINGS: [&str; 4] = ["dump", "pack", "packsize", "unpack"];

/// Takes away what scripts may not use and puts what counts in the place of what does not.
pub(super) fn restrict(lua: &Lua, budget: &Rc<Budget>) -> Result<()> {
    let globals = lua.globals();
    for name in NO_GLOBALS {
        globals.raw_set(name, Value::Nil)?;
    }
    // Scripts that were written with it to find their faults still run; there is nobody to read what they say.
    globals.raw_set("print", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    let table: Table = globals.raw_get("table")?;
    // With bounds of its own it runs on, natively, over places where nothing is.
    table.raw_set("move", Value::Nil)?;
    // Names of Lua 5.1, which scripts of the existing tool are written in.
    globals.raw_set("unpack", table.raw_get::<Function>("unpack")?)?;
    let math: Table = globals.raw_get("math")?;
    math.raw_set(
        "pow",
        lua.create_function(|_, (x, y): (f64, f64)| Ok(x.powf(y)))?,
    )?;
    nested(lua, &globals, &table, budget)?;
    strings(lua, &globals.raw_get("string")?, budget)
}

/// The string library, which is what `("x"):find` reaches too.
fn strings(lua: &Lua, string: &Table, budget: &Rc<Budget>) -> Result<()> {
    for name in NO_STRINGS {
        string.raw_set(name, Value::Nil)?;
    }
    string.raw_set("rep", lua.create_function(repeat)?)?;
    let counted = budget.clone();
    let find = move |lua: &Lua, arguments: Search| search(lua, &arguments, true, &counted.steps);
    string.raw_set("find", lua.create_function(find)?)?;
    let counted = budget.clone();
    let find = move |lua: &Lua, arguments: Search| search(lua, &arguments, false, &counted.steps);
    string.raw_set("match", lua.create_function(find)?)?;
    let counted = budget.clone();
    let all = move |lua: &Lua, arguments: Each| each(lua, arguments, counted.clone());
    string.raw_set("gmatch", lua.create_function(all)?)?;
    let counted = budget.clone();
    let all = move |lua: &Lua, arguments: Replace| {
        counted.enter()?;
        let replaced = replace(lua, &arguments, &counted.steps);
        counted.leave();
        replaced
    };
    string.raw_set("gsub", lua.create_function(all)?)
}

impl Budget {
    /// A native function is about to call one of the script's.
    fn enter(&self) -> Result<()> {
        let depth = self.depth.get();
        if depth >= DEPTH {
            return Err(Error::runtime("calls within calls too often"));
        }
        self.depth.set(depth + 1);
        Ok(())
    }

    /// It is done.
    fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }
}

/// `pcall`, `xpcall` and `table.sort`, which call functions of the script's: counted.
///
/// The handler of `xpcall` runs after the failed call, not within it: in there Lua calls no hooks, so that a handler
/// without end would be without end.
const NESTED: &str = "
local pcall, sort, error, unpack, pack, enter, leave = ...
local function protected(f, ...)
  enter()
  return leave(pcall(f, ...))
end
local function handled(f, handler, ...)
  local results = pack(protected(f, ...))
  if results[1] then return unpack(results, 1, results.n) end
  return false, handler(results[2])
end
local function sorted(list, before)
  local good, why = protected(sort, list, before)
  if not good then error(why, 0) end
end
return protected, handled, sorted";

fn nested(lua: &Lua, globals: &Table, table: &Table, budget: &Rc<Budget>) -> Result<()> {
    let counted = budget.clone();
    let enter = lua.create_function(move |_, ()| counted.enter())?;
    let counted = budget.clone();
    let leave = lua.create_function(move |_, results: MultiValue| {
        counted.leave();
        Ok(results)
    })?;
    let from = |table: &Table, name: &str| table.raw_get::<Function>(name);
    let natives = (
        from(globals, "pcall")?,
        from(table, "sort")?,
        from(globals, "error")?,
        from(table, "unpack")?,
        from(table, "pack")?,
        enter,
        leave,
    );
    let (protected, handled, sorted): (Function, Function, Function) =
        lua.load(NESTED).call(natives)?;
    globals.raw_set("pcall", protected)?;
    globals.raw_set("xpcall", handled)?;
    table.raw_set("sort", sorted)
}

/// Subject, pattern, where to begin, whether the pattern is plain text.
type Search = (LuaString, LuaString, Option<i64>, Option<bool>);
/// Subject, pattern, where to begin.
type Each = (LuaString, LuaString, Option<i64>);
/// Subject, pattern, what to put in place, how often at most.
type Replace = (LuaString, LuaString, Value, Option<i64>);

/// `rep`, whose native form counts to any number where the text is empty.
fn repeat(
    lua: &Lua,
    (text, times, between): (LuaString, i64, Option<LuaString>),
) -> Result<LuaString> {
    let times = usize::try_from(times).unwrap_or_default();
    let text = text.as_bytes();
    let between = between.as_ref().map(LuaString::as_bytes);
    let between = between.as_deref().unwrap_or_default();
    let size = (text.len() + between.len()).checked_mul(times);
    match size {
        Some(0) => lua.create_string(""),
        Some(size) if size <= MEMORY => {
            let mut all = Vec::with_capacity(size);
            for time in 0..times {
                if time > 0 {
                    all.extend_from_slice(between);
                }
                all.extend_from_slice(&text);
            }
            lua.create_string(all)
        }
        _ => Err(Error::runtime("resulting string too large")),
    }
}

/// `find` (with places) and `match` (without).
fn search(
    lua: &Lua,
    (subject, pattern, from, plain): &Search,
    places: bool,
    steps: &Steps,
) -> Result<MultiValue> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let Some(from) = begin(*from, subject.len()) else {
        return Value::Nil.into_lua_multi(lua);
    };
    if places && (*plain == Some(true) || pattern::is_plain(&pattern)) {
        let place = pattern::find_plain(&subject, &pattern, from, steps).map_err(told)?;
        return match place {
            Some(place) => (place + 1, place + pattern.len()).into_lua_multi(lua),
            None => Value::Nil.into_lua_multi(lua),
        };
    }
    let (anchored, pattern) = anchor(&pattern);
    let found = pattern::find(&subject, pattern, from, anchored, steps).map_err(told)?;
    let Some(found) = found else {
        return Value::Nil.into_lua_multi(lua);
    };
    if !places {
        return values(lua, &subject, &found.values().map_err(told)?);
    }
    let mut all = vec![
        Value::Integer(integer(found.start + 1)),
        Value::Integer(integer(found.end)),
    ];
    if !found.captures.is_empty() {
        all.extend(values(lua, &subject, &found.values().map_err(told)?)?);
    }
    Ok(MultiValue::from_vec(all))
}

/// `gmatch`: a function that gives the next match at each call.
fn each(lua: &Lua, (subject, pattern, from): Each, budget: Rc<Budget>) -> Result<Function> {
    let mut next = begin(from, subject.as_bytes().len());
    let mut last = None;
    lua.create_function_mut(move |lua, ()| {
        let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
        while let Some(from) = next {
            let found = pattern::find(&subject, &pattern, from, false, &budget.steps);
            let Some(found) = found.map_err(told)? else {
                break;
            };
            if last == Some(found.end) {
                // The empty match behind the one before.
                next = Some(found.start + 1);
                continue;
            }
            last = Some(found.end);
            next = Some(found.end);
            return values(lua, &subject, &found.values().map_err(told)?);
        }
        next = None;
        Value::Nil.into_lua_multi(lua)
    })
}

/// `gsub`: the text with its matches replaced, and how many there were.
fn replace(
    lua: &Lua,
    (subject, pattern, by, most): &Replace,
    steps: &Steps,
) -> Result<(LuaString, usize)> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let (anchored, pattern) = anchor(&pattern);
    let most = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or_default());
    let (mut text, mut count) = (Vec::new(), 0);
    let (mut at, mut last) = (0, None);
    while count < most {
        let found = pattern::find(&subject, pattern, at, true, steps).map_err(told)?;
        match found.filter(|found| last != Some(found.end)) {
            Some(found) => {
                count += 1;
                replacement(lua, &subject, &found, by, &mut text)?;
                at = found.end;
                last = Some(at);
            }
            None => match subject.get(at) {
                Some(c) => {
                    text.push(*c);
                    at += 1;
                }
                None => break,
            },
        }
        if text.len() > MEMORY {
            return Err(Error::runtime("resulting string too large"));
        }
        if anchored {
            break;
        }
    }
    text.extend_from_slice(subject.get(at..).unwrap_or_default());
    Ok((lua.create_string(text)?, count))
}

/// What stands in the place of one match.
fn replacement(
    lua: &Lua,
    subject: &[u8],
    found: &Found,
    by: &Value,
    text: &mut Vec<u8>,
) -> Result<()> {
    let value = match by {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            let by = lua.coerce_string(by.clone())?;
            let by = by.as_ref().map(LuaString::as_bytes);
            return expand(lua, subject, found, by.as_deref().unwrap_or_default(), text);
        }
        Value::Table(table) => {
            let first = found.number(1).map_err(told)?;
            let first = values(lua, subject, &[first])?.into_iter().next();
            table.raw_get::<Value>(first.unwrap_or(Value::Nil))?
        }
        Value::Function(function) => {
            let values = values(lua, subject, &found.values().map_err(told)?)?;
            let results: Variadic<Value> = function.call(values)?;
            results.into_iter().next().unwrap_or(Value::Nil)
        }
        other => return Err(invalid(other)),
    };
    match value {
        Value::Nil | Value::Boolean(false) => {
            let whole = subject.get(found.start..found.end);
            text.extend_from_slice(whole.unwrap_or_default());
        }
        value => {
            let value = lua.coerce_string(value.clone())?.ok_or(invalid(&value))?;
            text.extend_from_slice(&value.as_bytes());
        }
    }
    Ok(())
}

fn invalid(value: &Value) -> Error {
    Error::runtime(format!(
        "invalid replacement value (a {})",
        value.type_name()
    ))
}

/// A replacement text with the captures in the place of `%0` to `%9`.
fn expand(lua: &Lua, subject: &[u8], found: &Found, by: &[u8], text: &mut Vec<u8>) -> Result<()> {
    let mut rest = by.iter();
    while let Some(c) = rest.next() {
        if *c != b'%' {
            text.push(*c);
            continue;
        }
        match rest.next() {
            Some(b'%') => text.push(b'%'),
            Some(digit) if digit.is_ascii_digit() => {
                let capture = found.number(usize::from(digit - b'0')).map_err(told)?;
                for value in values(lua, subject, &[capture])? {
                    if let Some(value) = lua.coerce_string(value)? {
                        text.extend_from_slice(&value.as_bytes());
                    }
                }
            }
            _ => return Err(Error::runtime("invalid use of '%' in replacement string")),
        }
    }
    Ok(())
}

/// Where a search begins; `None` behind the end.
fn begin(from: Option<i64>, length: usize) -> Option<usize> {
    let from = from.unwrap_or(1);
    let back = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
    let from = match from {
        0 => 0,
        1.. => back - 1,
        _ => length.saturating_sub(back),
    };
    (from <= length).then_some(from)
}

/// Whether a pattern holds only where the search begins, and the rest of it.
fn anchor(pattern: &[u8]) -> (bool, &[u8]) {
    match pattern.split_first() {
        Some((b'^', rest)) => (true, rest),
        _ => (false, pattern),
    }
}

fn values(lua: &Lua, subject: &[u8], captures: &[Capture]) -> Result<MultiValue> {
    let value = |capture: &Capture| match capture {
        Capture::Place(place) => Ok(Value::Integer(integer(*place))),
        Capture::Text(start, end) => {
            let text = subject.get(*start..*end).unwrap_or_default();
            lua.create_string(text).map(Value::String)
        }
        Capture::Open => Err(told(PatternError::Unfinished)),
    };
    captures.iter().map(value).collect()
}

fn integer(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

fn told(error: PatternError) -> Error {
    Error::runtime(error)
}
