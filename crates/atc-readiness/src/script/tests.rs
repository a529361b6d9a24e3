use proptest::prelude::*;
use serde_json::json;

use super::*;

mod hostile;

fn app() -> serde_json::Value {
    json!({
        "apiVersion": "x.dev/v1", "kind": "App", "metadata": { "name": "a", "generation": 3 },
        "spec": { "none": null, "list": ["one", "two"], "ratio": 0.5 },
        "status": { "phase": "Running", "version": "v1.22.333", "replicas": 3, "done": true },
    })
}

fn ask(text: &str) -> Result<bool, ScriptError> {
    Script::new("App.x.dev", text).is_ready(&app())
}

/// What the body of the function answers.
fn body(text: &str) -> Result<bool, ScriptError> {
    ask(&format!("return function(o) {text} end"))
}

#[test]
fn answers() {
    for (text, expect) in [
        ("return true", Ok(true)),
        ("return false", Ok(false)),
        ("return nil", Ok(false)),
        ("", Ok(false)),
        (
            "return o.status.phase == 'Running' and o.status.replicas == 3",
            Ok(true),
        ),
        // What is null in JSON is nothing in Lua.
        ("return o.spec.none == nil and o.nothing == nil", Ok(true)),
        (
            "return #o.spec.list == 2 and o.spec.list[1] == 'one'",
            Ok(true),
        ),
        (
            "return o.spec.ratio * 2 == 1 and o.metadata.generation // 1 == 3",
            Ok(true),
        ),
        (
            "for i, v in ipairs(o.spec.list) do if v == 'two' then return i == 2 end end",
            Ok(true),
        ),
        (
            "local a, b, c = o.status.version:match('^v(%d+)%.(%d+)%.(%d+)$') return a .. b .. c == '122333'",
            Ok(true),
        ),
        ("return 1", Err(ScriptError::NoAnswer { found: "integer" })),
        (
            "return 'true'",
            Err(ScriptError::NoAnswer { found: "string" }),
        ),
        ("return {}", Err(ScriptError::NoAnswer { found: "table" })),
    ] {
        assert_eq!(body(text), expect, "{text}");
    }
    // What stands around the function runs too.
    let around = "local wanted = 'Running' local function is(o) return o.status.phase == wanted end return is";
    assert_eq!(ask(around), Ok(true));
}

#[test]
fn what_is_no_script() {
    for (text, words) in [
        ("return function(o", "no Lua: "),
        ("", "returns a nil, where it must return a function"),
        ("return true", "returns a boolean, where"),
        ("return function(o) error('broken\\nhere') end", "fails: "),
        (
            "return function(o) return o.a.b end",
            "App.x.dev:1: attempt to index a nil value (field 'a')",
        ),
        ("error({})", "fails: "),
        ("\x1bLua", "no Lua: "),
    ] {
        let error = ask(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains('\n') && error.len() < 500, "{error}");
    }
    let long = Script::new("x", &" ".repeat(TEXT_MAX + 1)).is_ready(&app());
    assert_eq!(long, Err(ScriptError::Long { size: TEXT_MAX + 1 }));
}

#[test]
fn what_scripts_have_and_what_not() {
    for name in [
        "io",
        "os",
        "debug",
        "package",
        "coroutine",
        "load",
        "loadfile",
        "dofile",
        "require",
        "collectgarbage",
        "setmetatable",
        "getmetatable",
        "string.dump",
        "string.pack",
        "table.move",
    ] {
        assert_eq!(body(&format!("return {name} == nil")), Ok(true), "{name}");
    }
    for call in [
        "table.concat({1, 2}, ',') == '1,2'",
        "math.floor(1.5) == 1",
        "math.pow(2, 3) == 8",
        "unpack({5}) == 5",
        "select('#', 1, 2) == 2",
        "tostring(1) == '1'",
        "tonumber('7') == 7",
        "utf8.len('ä') == 1",
        "('%d'):format(3) == '3'",
        "('ab'):upper() == 'AB'",
        "('ab'):rep(2, '-') == 'ab-ab'",
        "print('x') == nil",
        "('x'):rep(0) == '' and (''):rep(1 << 60) == ''",
        "select(2, pcall(function(x) return x end, 5)) == 5",
        "select('#', pcall(function() return nil, nil end)) == 3",
        "select(2, pcall(error, {code = 7})).code == 7",
        "select(2, xpcall(error, function(e) return e .. '!' end, 'oh')) == 'oh!'",
        "select(2, xpcall(function(x) return x end, print, 5)) == 5",
        "(function() local t = {3, 1, 2} table.sort(t) return t[1] == 1 and t[3] == 3 end)()",
        "(function() local t = {1, 2} table.sort(t, function(a, b) return a > b end) return t[1] == 2 end)()",
        "select(2, pcall(table.sort, {1, 2}, function() error('no', 0) end)) == 'no'",
    ] {
        assert_eq!(body(&format!("return {call}")), Ok(true), "{call}");
    }
    // Nothing is left behind for the next object.
    assert_eq!(
        ask("left = (left or 0) + 1 return function() return left == 1 end"),
        Ok(true)
    );
    assert_eq!(
        ask("left = (left or 0) + 1 return function() return left == 1 end"),
        Ok(true)
    );
}

#[test]
fn an_object_is_the_scripts_own() {
    let object = app();
    let script = Script::new(
        "x",
        "return function(o) o.status.phase = 'x' o.spec = nil return o.spec == nil end",
    );
    assert_eq!(script.is_ready(&object), Ok(true));
    assert_eq!(object, app());
}

/// What our string functions give, and what Lua's own give, as text.
fn both(call: &str) -> (String, String) {
    let shown = |lua: &Lua| {
        let text = format!(
            "local t = table.pack(pcall(function() return {call} end)) for i = 1, t.n do t[i] = tostring(t[i]) end \
             if t[1] == 'false' then return 'error' end return table.concat(t, '|', 1, t.n)"
        );
        lua.load(text).eval::<String>().unwrap()
    };
    let ours = machine(&Rc::new(Budget::new())).unwrap();
    let theirs = Lua::new_with(StdLib::STRING | StdLib::TABLE, LuaOptions::new()).unwrap();
    (shown(&ours), shown(&theirs))
}

#[test]
fn patterns_are_those_of_lua() {
    for call in [
        "('hello world'):find('o w')",
        "('hello'):find('l+')",
        "('hello'):find('(l)(l)')",
        "('a.b'):find('.', 2, true)",
        "('hello'):find('xyz')",
        "('hello'):find('', 10)",
        "('hello'):find('', 6)",
        "('hello'):find('l', -2)",
        "('key = value'):match('^(%w+)%s*=%s*(%w+)$')",
        "('  x '):match('^%s*(.-)%s*$')",
        "('abc'):match('()b()')",
        "('f(a(b)c)d'):match('%b()')",
        "('THE (quick) fox'):find('%f[%a]%a+%f[%A]')",
        "('aa'):match('(a)%1')",
        "('x=1, y=2'):gsub('(%w)=(%w)', '%2=%1')",
        "('abc'):gsub('', '-')",
        "('abc'):gsub('%w', '%0%0', 2)",
        "('abc'):gsub('b', {b = 'X'})",
        "('abc'):gsub('b', {})",
        "('abc'):gsub('%w', function(c) return c:upper() end)",
        "('abc'):gsub('b', function() return false end)",
        "('abc'):gsub('^a', '%%')",
        "('abc'):gsub('a', '%2')",
        "('abc'):gsub('a', '%x')",
        "('abc'):gsub('a', true)",
        "('[x]'):find('[]]')",
        "('a-z'):find('[a%-z]+')",
        "('x'):find('[^%s]')",
        "('x'):find('[a')",
        "('x'):find('%')",
        "('x'):find('(x')",
        "('x'):find('x)')",
        "('x'):find('%1')",
        "('x'):find('%f')",
        "('x'):find('%b')",
        "('a\\0b'):find('%z')",
        "('abc'):match('.', -1)",
        "('aaa'):match('a-$')",
        "('aaab'):match('a-b')",
        "('aXb'):match('a?X?b?c?')",
        "('x^y'):find('^', 1, true)",
        "(function() local t = {} for k, v in ('a=1,b=2'):gmatch('(%w)=(%w)') do t[#t + 1] = k .. v end return #t, t[2] end)()",
        "(function() local n = 0 for w in ('one two'):gmatch('%a*') do n = n + 1 end return n end)()",
        "(function() local n = 0 for w in ('^a^a'):gmatch('^a') do n = n + 1 end return n end)()",
    ] {
        let (ours, theirs) = both(call);
        assert_eq!(ours, theirs, "{call}");
    }
}

proptest! {
    #[test]
    fn any_pattern_is_as_in_lua(subject in "[ab.( ]{0,8}", pattern in "[ab.%*+?^$()\\[\\]a1bfds-]{0,7}", by in "[x%01]{0,3}") {
        for call in [
            format!("([==[{subject}]==]):find([==[{pattern}]==])"),
            format!("([==[{subject}]==]):match([==[{pattern}]==])"),
            format!("([==[{subject}]==]):gsub([==[{pattern}]==], [==[{by}]==])"),
            format!("(function() local t = {{}} for a, b in ([==[{subject}]==]):gmatch([==[{pattern}]==]) do \
                     t[#t + 1] = tostring(a) .. tostring(b) end return table.concat(t, ';') end)()"),
        ] {
            let (ours, theirs) = both(&call);
            prop_assert_eq!(ours, theirs, "{}", call);
        }
    }

    #[test]
    fn no_text_breaks_the_process(text in ".{0,60}") {
        let _ = ask(&text);
        let _ = body(&text);
    }
}
