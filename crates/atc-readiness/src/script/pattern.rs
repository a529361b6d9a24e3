//! Lua's string patterns with a budget: each step of the matcher counts, so that no pattern runs for ever.
//!
//! Lua's own matcher is native code that nothing can interrupt; a chain of `a*` keeps it busy for hours. The language is
//! Lua 5.4's, section 6.4.1 of its manual.

use std::cell::Cell;

/// Captures that one pattern may have, as in Lua.
const MAX_CAPTURES: usize = 32;
/// Matches within matches, as in Lua: it bounds the native stack.
const MAX_DEPTH: usize = 200;
/// The character that escapes.
const ESCAPE: u8 = b'%';

/// Steps left to all matches of one run.
#[derive(Debug)]
pub(super) struct Steps(Cell<u64>);

impl Steps {
    pub(super) fn new(steps: u64) -> Self {
        Self(Cell::new(steps))
    }

    /// Takes some, or says that there are none left.
    pub(super) fn take(&self, steps: u64) -> Result<(), PatternError> {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or_default());
        left.map(drop).ok_or(PatternError::Steps)
    }

    pub(super) fn are_used_up(&self) -> bool {
        self.0.get() == 0
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    #[error("string patterns take too many steps")]
    Steps,
    #[error("pattern too complex")]
    Depth,
    #[error("too many captures")]
    Captures,
    #[error("malformed pattern ({0})")]
    Malformed(&'static str),
    #[error("invalid pattern capture")]
    Close,
    #[error("unfinished capture")]
    Unfinished,
    #[error("invalid capture index %{0}")]
    Index(usize),
}

type Result<T, E = PatternError> = std::result::Result<T, E>;

/// A part of the subject, or a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// From here to there.
    Text(usize, usize),
    /// The place, counted from 1.
    Place(usize),
    /// It was never closed, which only matters to whoever asks for it.
    Open,
}

/// A match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Those of the pattern; empty if it has none.
    pub(super) captures: Vec<Capture>,
}

impl Found {
    /// The captures, or the whole match where there are none.
    pub(super) fn values(&self) -> Result<Vec<Capture>> {
        if self.captures.is_empty() {
            return Ok(vec![Capture::Text(self.start, self.end)]);
        }
        self.captures.iter().copied().map(closed).collect()
    }

    /// A capture by its number in a replacement; 0 is the whole match.
    pub(super) fn number(&self, index: usize) -> Result<Capture> {
        let whole = Capture::Text(self.start, self.end);
        match (index, self.captures.get(index.wrapping_sub(1))) {
            (0, _) | (1, None) => Ok(whole),
            (_, Some(capture)) => closed(*capture),
            (_, None) => Err(PatternError::Index(index)),
        }
    }
}

fn closed(capture: Capture) -> Result<Capture> {
    match capture {
        Capture::Open => Err(PatternError::Unfinished),
        capture => Ok(capture),
    }
}

/// Whether a pattern is plain text.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|c| b"^$*+?.([%-".contains(c))
}

/// The first occurrence of a plain text from a place on.
pub(super) fn find_plain(
    subject: &[u8],
    text: &[u8],
    from: usize,
    steps: &Steps,
) -> Result<Option<usize>> {
    let rest = subject.get(from..).unwrap_or_default();
    if text.is_empty() {
        return Ok((from <= subject.len()).then_some(from));
    }
    // As if each place were compared whole, which is the worst case.
    let worst = rest.len().saturating_mul(text.len());
    steps.take(u64::try_from(worst).unwrap_or(u64::MAX) / 8)?;
    let place = rest.windows(text.len()).position(|window| window == text);
    Ok(place.map(|place| from + place))
}

/// The match of a pattern at a place, or at the first one behind it where `anchored` is not asked for.
pub(super) fn find(
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    anchored: bool,
    steps: &Steps,
) -> Result<Option<Found>> {
    for start in from..=subject.len() {
        let mut matcher = Matcher {
            subject,
            pattern,
            steps,
            depth: 0,
            captures: Vec::new(),
        };
        if let Some(end) = matcher.run(start, 0)? {
            return Ok(Some(matcher.found(start, end)));
        }
        if anchored {
            break;
        }
    }
    Ok(None)
}

#[derive(Clone, Copy, PartialEq)]
enum Length {
    Open,
    Place,
    Closed(usize),
}

struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    steps: &'a Steps,
    depth: usize,
    captures: Vec<(usize, Length)>,
}

impl Matcher<'_> {
    fn found(&self, start: usize, end: usize) -> Found {
        let capture = |(start, length): &(usize, Length)| match length {
            Length::Open => Capture::Open,
            Length::Place => Capture::Place(start + 1),
            Length::Closed(length) => Capture::Text(*start, start + length),
        };
        Found {
            start,
            end,
            captures: self.captures.iter().map(capture).collect(),
        }
    }

    fn at(&self, place: usize) -> Option<u8> {
        self.pattern.get(place).copied()
    }

    /// Where the match ends that begins at `s` with the pattern from `p` on.
    fn run(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PatternError::Depth);
        }
        let end = self.walk(s, p);
        self.depth -= 1;
        end
    }

    fn walk(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>> {
        loop {
            self.steps.take(1)?;
            let Some(c) = self.at(p) else {
                return Ok(Some(s));
            };
            let next = self.at(p + 1);
            let went = match (c, next) {
                (b'(', Some(b')')) => return self.open(s, p + 2, Length::Place),
                (b'(', _) => return self.open(s, p + 1, Length::Open),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.subject.len()).then_some(s)),
                (ESCAPE, Some(b'b')) => self.balance(s, p + 2)?.map(|s| (s, p + 4)),
                (ESCAPE, Some(b'f')) => self.frontier(s, p + 2)?.map(|p| (s, p)),
                (ESCAPE, Some(digit)) if digit.is_ascii_digit() => {
                    self.again(s, digit)?.map(|s| (s, p + 2))
                }
                _ => match self.item(s, p)? {
                    Item::End(end) => return Ok(end),
                    Item::Go(s, p) => Some((s, p)),
                },
            };
            match went {
                Some((to_s, to_p)) => (s, p) = (to_s, to_p),
                None => return Ok(None),
            }
        }
    }

    /// One class and what says how often.
    fn item(&mut self, s: usize, p: usize) -> Result<Item> {
        let end = self.class_end(p)?;
        let matches = self.single(s, p, end);
        Ok(match (self.at(end), matches) {
            (Some(b'*' | b'?' | b'-'), false) => Item::Go(s, end + 1),
            (_, false) => Item::End(None),
            (Some(b'?'), true) => match self.run(s + 1, end + 1)? {
                Some(found) => Item::End(Some(found)),
                None => Item::Go(s, end + 1),
            },
            (Some(b'+'), true) => Item::End(self.most(s + 1, p, end)?),
            (Some(b'*'), true) => Item::End(self.most(s, p, end)?),
            (Some(b'-'), true) => Item::End(self.least(s, p, end)?),
            (_, true) => Item::Go(s + 1, end),
        })
    }

    fn most(&mut self, s: usize, p: usize, end: usize) -> Result<Option<usize>> {
        let mut count = 0;
        while self.single(s + count, p, end) {
            self.steps.take(1)?;
            count += 1;
        }
        loop {
            if let Some(found) = self.run(s + count, end + 1)? {
                return Ok(Some(found));
            }
            match count.checked_sub(1) {
                Some(less) => count = less,
                None => return Ok(None),
            }
        }
    }

    fn least(&mut self, mut s: usize, p: usize, end: usize) -> Result<Option<usize>> {
        loop {
            if let Some(found) = self.run(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, length: Length) -> Result<Option<usize>> {
        if self.captures.len() >= MAX_CAPTURES {
            return Err(PatternError::Captures);
        }
        self.captures.push((s, length));
        let end = self.run(s, p)?;
        if end.is_none() {
            self.captures.pop();
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        let open = self.captures.iter().rposition(|(_, l)| *l == Length::Open);
        let index = open.ok_or(PatternError::Close)?;
        self.set_length(index, |start| Length::Closed(s - start));
        let end = self.run(s, p)?;
        if end.is_none() {
            self.set_length(index, |_| Length::Open);
        }
        Ok(end)
    }

    fn set_length(&mut self, index: usize, length: impl Fn(usize) -> Length) {
        if let Some(capture) = self.captures.get_mut(index) {
            capture.1 = length(capture.0);
        }
    }

    /// `%1`: the text of a capture once more.
    fn again(&self, s: usize, digit: u8) -> Result<Option<usize>> {
        let number = usize::from(digit - b'0');
        let capture = number.checked_sub(1).and_then(|i| self.captures.get(i));
        let (start, length) = match capture {
            Some((start, Length::Closed(length))) => (start, length),
            // A place has no text.
            Some((_, Length::Place)) => return Ok(None),
            _ => return Err(PatternError::Index(number)),
        };
        self.steps
            .take(u64::try_from(*length).unwrap_or(u64::MAX) / 8)?;
        let text = self.subject.get(*start..start + length);
        let here = self.subject.get(s..s + length);
        Ok((text.is_some() && text == here).then_some(s + length))
    }

    /// `%bxy`: from an x to its y.
    fn balance(&self, s: usize, p: usize) -> Result<Option<usize>> {
        let (Some(open), Some(close)) = (self.at(p), self.at(p + 1)) else {
            return Err(PatternError::Malformed("missing arguments to '%b'"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1;
        for (place, c) in self.subject.iter().enumerate().skip(s + 1) {
            self.steps.take(1)?;
            if *c == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(place + 1));
                }
            } else if *c == open {
                level += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: where the set begins.
    fn frontier(&self, s: usize, p: usize) -> Result<Option<usize>> {
        if self.at(p) != Some(b'[') {
            return Err(PatternError::Malformed("missing '[' after '%f'"));
        }
        let end = self.class_end(p)?;
        let before = s.checked_sub(1).and_then(|s| self.subject.get(s)).copied();
        let here = self.subject.get(s).copied().unwrap_or_default();
        let begins =
            !self.set(before.unwrap_or_default(), p, end - 1) && self.set(here, p, end - 1);
        Ok(begins.then_some(end))
    }

    /// Where the class that begins at `p` ends.
    fn class_end(&self, p: usize) -> Result<usize> {
        match self.at(p) {
            Some(ESCAPE) if self.at(p + 1).is_none() => {
                Err(PatternError::Malformed("ends with '%'"))
            }
            Some(ESCAPE) => Ok(p + 2),
            Some(b'[') => {
                let mut p = p + 1;
                if self.at(p) == Some(b'^') {
                    p += 1;
                }
                loop {
                    let c = self.at(p);
                    if c.is_none() {
                        return Err(PatternError::Malformed("missing ']'"));
                    }
                    p += if c == Some(ESCAPE) && self.at(p + 1).is_some() {
                        2
                    } else {
                        1
                    };
                    if self.at(p) == Some(b']') {
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the character at `s` is of the class from `p` to `end`.
    fn single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(c) = self.subject.get(s).copied() else {
            return false;
        };
        match self.at(p) {
            Some(b'.') => true,
            Some(ESCAPE) => self.at(p + 1).is_some_and(|class| is_of(c, class)),
            Some(b'[') => self.set(c, p, end - 1),
            Some(wanted) => wanted == c,
            None => false,
        }
    }

    /// Whether a character is in the set whose `[` is at `p` and whose `]` is at `end`.
    fn set(&self, c: u8, p: usize, end: usize) -> bool {
        let negated = self.at(p + 1) == Some(b'^');
        let mut p = if negated { p + 2 } else { p + 1 };
        while p < end {
            let here = self.at(p).unwrap_or_default();
            let next = self.at(p + 1).unwrap_or_default();
            if here == ESCAPE {
                if is_of(c, next) {
                    return !negated;
                }
                p += 2;
            } else if next == b'-' && p + 2 < end {
                let last = self.at(p + 2).unwrap_or_default();
                if here <= c && c <= last {
                    return !negated;
                }
                p += 3;
            } else {
                if here == c {
                    return !negated;
                }
                p += 1;
            }
        }
        negated
    }
}

enum Item {
    End(Option<usize>),
    Go(usize, usize),
}

/// Whether a character is of a class: `%a`, `%A` and so on; any other letter stands for itself.
fn is_of(c: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => c.is_ascii_alphabetic(),
        b'c' => c.is_ascii_control(),
        b'd' => c.is_ascii_digit(),
        b'g' => c.is_ascii_graphic(),
        b'l' => c.is_ascii_lowercase(),
        b'p' => c.is_ascii_punctuation(),
        b's' => matches!(c, b' ' | b'\t'..=b'\r'),
        b'u' => c.is_ascii_uppercase(),
        b'w' => c.is_ascii_alphanumeric(),
        b'x' => c.is_ascii_hexdigit(),
        b'z' => c == 0,
        _ => return class == c,
    };
    is != class.is_ascii_uppercase()
}
