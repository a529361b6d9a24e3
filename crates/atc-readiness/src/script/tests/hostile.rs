//! Scripts that mean harm: each ends in time with an error that says why, and the process lives.

use super::*;

/// The longest that any of these may take: the time of a run, and a native function on its way, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn ends(text: &str) -> ScriptError {
    let begun = Instant::now();
    let error = body(text).expect_err(text);
    assert!(begun.elapsed() < PATIENCE, "{text}: {:?}", begun.elapsed());
    error
}

#[test]
fn endless_loops() {
    for text in [
        "while true do end",
        "goto here ::here:: goto here",
        "while true do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while true do f() end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "repeat pcall(error) until false",
        "xpcall(function() while true do end end, function() while true do end end)",
        // Within native code, where a coroutine could not yield.
        "table.sort({1, 2, 3}, function() while true do end end)",
        "while true do pcall(table.sort, {1, 2, 3}, function() while true do pcall(function() while true do end end) end end) end",
        "while true do pcall(string.gsub, 'x', 'x', function() while true do pcall(error) end end) end",
        "for i = 1, math.maxinteger do local x = i end",
        "local function f() f() end while true do pcall(f) end",
    ] {
        assert_eq!(ends(text), ScriptError::Time, "{text}");
    }
    // Before the function is there, too.
    assert_eq!(ask("while true do end"), Err(ScriptError::Time));
}

#[test]
fn an_answer_after_the_budget_is_none() {
    let text = "pcall(function() while true do end end) return true";
    assert_eq!(ends(text), ScriptError::Time);
}

#[test]
fn patterns_that_explode() {
    let stars = "a*".repeat(30);
    for text in [
        format!("return ('a'):rep(5000):find('{stars}b') == nil"),
        format!("return ('a'):rep(5000):match('{stars}b') == nil"),
        format!("return ('a'):rep(5000):gsub('{stars}b', '') == ''"),
        format!("for x in ('a'):rep(5000):gmatch('{stars}b') do end"),
        format!("while true do pcall(string.find, ('a'):rep(5000), '{stars}b') end"),
        "return ('a'):rep(1 << 20):find(('a'):rep(1 << 19) .. 'b', 1, true) == nil".to_owned(),
    ] {
        assert_eq!(ends(&text), ScriptError::Time, "{text}");
    }
    let deep = ends("return ('('):rep(300):find(('%('):rep(10) .. ('(a?'):rep(100)) == nil");
    assert!(matches!(deep, ScriptError::Failed(_)), "{deep}");
}

#[test]
fn memory_bombs() {
    for text in [
        "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "return #(('x'):rep(15 << 20) .. ('y'):rep(15 << 20)) == 0",
        "local function f(...) return f(1, ...) end f()",
    ] {
        let error = ends(text);
        let expected = matches!(error, ScriptError::Memory | ScriptError::Time)
            || matches!(&error, ScriptError::Failed(why) if why.contains("overflow") || why.contains("too large"));
        assert!(expected, "{text}: {error}");
    }
    let error =
        ends("while true do pcall(function() local s = 'x' while true do s = s .. s end end) end");
    assert!(
        matches!(error, ScriptError::Time | ScriptError::Memory),
        "{error}"
    );
    assert!(matches!(
        ends("return ('x'):rep(1 << 40) == ''"),
        ScriptError::Failed(_)
    ));
}

#[test]
fn deep_recursion() {
    for text in [
        "local function f() return 1 + f() end return f()",
        "local function f(x) return (x:gsub('.', f)) end return f('aaaa') == ''",
        "local function f() local ok, e = pcall(f) return 1 + 1 + f() end return f()",
        "local function f() table.sort({1, 2, 3}, f) end return f()",
        "local function f(x) string.gsub('x', 'x', function() table.sort({1, 2, 3}, f) end) end return f()",
    ] {
        ends(text);
    }
    // Natively nested calls are few, so that the end of a run finds room on the stack.
    for call in [
        "pcall(f)",
        "xpcall(f, print)",
        "table.sort({1, 2, 3}, f)",
        "string.gsub('x', 'x', f)",
    ] {
        let text = format!("local function f() {call} return f() end while true do pcall(f) end");
        assert_eq!(ends(&text), ScriptError::Time, "{call}");
        let text = format!(
            "local depth = 0 local function f() depth = depth + 1 {call} end pcall(f) return depth < 50"
        );
        assert_eq!(body(&text), Ok(true), "{call}");
    }
    let nested = format!("return {}1{}", "(".repeat(5000), ")".repeat(5000));
    let error = ends(&nested).to_string();
    assert!(error.contains("overflow"), "{error}");
}

#[test]
fn metatables() {
    for text in [
        "return setmetatable(o, { __index = o })",
        "return getmetatable('').__index == nil",
        "return setmetatable({}, { __gc = function() while true do end end })",
    ] {
        let error = ends(text).to_string();
        assert!(error.contains("metatable"), "{text}: {error}");
    }
    // Nor does the object bring one.
    assert_eq!(
        body("return rawequal(o.spec.list.x, nil) and rawlen(o.spec.list) == 2"),
        Ok(true)
    );
}

#[test]
fn large_objects() {
    let object = |count: usize| {
        let items: Vec<_> = (0..count)
            .map(|i| json!({ "name": format!("item-{i}"), "value": i }))
            .collect();
        json!({ "items": items })
    };
    let script = Script::new("x", "return function(o) return #o.items > 0 end");
    assert_eq!(script.is_ready(&object(20_000)), Ok(true));
    assert_eq!(script.is_ready(&object(500_000)), Err(ScriptError::Memory));
}
