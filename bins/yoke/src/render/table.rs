//! Tables for people, in a box with round corners.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::printable;

/// A table with a line of titles. Cells are as wide as what a terminal shows of them; what would steer it is escaped.
pub(crate) fn table<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let cell = |text: &str| printable(text).replace('\n', "\\n").replace('\t', "\\t");
    let titles = titles.map(cell);
    let rows: Vec<[String; N]> = rows
        .iter()
        .map(|row| row.each_ref().map(|text| cell(text)))
        .collect();
    let mut widths = titles.each_ref().map(|title| title.width());
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.width().max(*width);
        }
    }
    let mut out = String::new();
    rule(&mut out, &widths, ['╭', '┬', '╮']);
    line(&mut out, &widths, &titles);
    rule(&mut out, &widths, ['├', '┼', '┤']);
    for row in &rows {
        line(&mut out, &widths, row);
    }
    rule(&mut out, &widths, ['╰', '┴', '╯']);
    out
}

fn rule(out: &mut String, widths: &[usize], [first, between, last]: [char; 3]) {
    for (index, width) in widths.iter().enumerate() {
        out.push(if index == 0 { first } else { between });
        out.push_str(&"─".repeat(width + 2));
    }
    out.push(last);
    out.push('\n');
}

fn line(out: &mut String, widths: &[usize], cells: &[String]) {
    for (width, text) in widths.iter().zip(cells) {
        let blanks = width.saturating_sub(text.width());
        // Writing to a String can't fail.
        let _ = write!(out, "│ {text}{:blanks$} ", "");
    }
    out.push_str("│\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes() {
        let rows = [
            ["1".to_owned(), "näh\n\x1b[31m".to_owned()],
            ["2 (current)".to_owned(), "航空".to_owned()],
        ];
        let wanted = "\
╭─────────────┬─────────────────╮
│ id          │ flight          │
├─────────────┼─────────────────┤
│ 1           │ näh\\n\\u{1b}[31m │
│ 2 (current) │ 航空            │
╰─────────────┴─────────────────╯
";
        assert_eq!(table(["id", "flight"], &rows), wanted);
        assert_eq!(table(["id"], &[]), "╭────╮\n│ id │\n├────┤\n╰────╯\n");
    }
}
