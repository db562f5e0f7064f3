//! Tables as text: fits columns into a width, wraps cells, and turns to one block a row where
//! even the narrowest columns do not fit.

use super::paper::{Paper, Style};
use super::table::{Column, Row, Tone};
use std::io;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Spaces between two columns, where there is room and where there is little.
const GAPS: [usize; 2] = [2, 1];

/// Writes the table, indented by two spaces.
pub fn draw(columns: &[Column], rows: &[Row], paper: &mut Paper<'_>) -> io::Result<()> {
    // A column that says nothing in any row takes no room.
    let used: Vec<usize> = (0..columns.len())
        .filter(|c| columns.get(*c).is_some_and(Column::in_text))
        .filter(|c| rows.iter().any(|r| r.get(*c).is_some_and(|cell| !matches!(cell.shown(), "" | "–"))))
        .collect();
    let room = paper.width.saturating_sub(2);
    let fit = |gap: usize| widths(columns, rows, &used, room, gap).map(|widths| Fit { widths, gap });
    match GAPS.into_iter().find_map(fit) {
        Some(fit) => grid(columns, rows, &used, &fit, paper),
        None => blocks(columns, rows, &used, paper),
    }
}

/// Columns in which a table fits `room` with one line a row, in their order, each with its width;
/// one space stands between two. Columns that say nothing in any row take no room; where all the
/// others do not fit, the last go.
pub fn one_line(columns: &[Column], rows: &[Row], room: usize) -> Vec<(usize, usize)> {
    let is_said = |c: &usize| rows.iter().any(|r| r.get(*c).is_some_and(|cell| !matches!(cell.shown(), "" | "–")));
    let mut used: Vec<usize> = (0..columns.len()).filter(is_said).collect();
    loop {
        if let Some(widths) = widths(columns, rows, &used, room, 1) {
            return used.into_iter().zip(widths).collect();
        }
        used.pop();
    }
}

/// How a table fits a page: the width of each column and the spaces between two.
struct Fit {
    widths: Vec<usize>,
    gap: usize,
}

/// Width of each used column, or none where they do not fit.
fn widths(columns: &[Column], rows: &[Row], used: &[usize], room: usize, gap: usize) -> Option<Vec<usize>> {
    let room = room.checked_sub(gap * used.len().saturating_sub(1))?;
    let mut least = Vec::with_capacity(used.len());
    let mut whole_words = Vec::with_capacity(used.len());
    let mut ideal = Vec::with_capacity(used.len());
    for &c in used {
        let column = columns.get(c)?;
        let heading = longest_word(column.name);
        let cells = || rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.shown());
        let longest = cells().map(UnicodeWidthStr::width).max().unwrap_or(0);
        let word = cells().map(longest_word).max().unwrap_or(0);
        let min = column.min.max(heading).min(longest.max(heading));
        let max = longest.min(column.max).max(min).max(heading);
        least.push(min);
        whole_words.push(word.clamp(min, max));
        ideal.push(max);
    }
    let mut widths = least;
    let mut spare = room.checked_sub(widths.iter().sum())?;
    widen(&mut widths, &whole_words, &mut spare);
    widen(&mut widths, &ideal, &mut spare);
    Some(widths)
}

/// Gives each column a part of `spare` in proportion to what it lacks to reach `wanted`.
fn widen(widths: &mut [usize], wanted: &[usize], spare: &mut usize) {
    let lack = |w: &usize, want: &usize| want.saturating_sub(*w);
    let mut lacking: usize = widths.iter().zip(wanted).map(|(w, want)| lack(w, want)).sum();
    let mut left = (*spare).min(lacking);
    *spare -= left;
    for (w, want) in widths.iter_mut().zip(wanted) {
        let mine = lack(w, want);
        let Some(more) = (left * mine).checked_div(lacking) else { return };
        *w += more;
        left -= more;
        lacking -= mine;
    }
}

/// Width of the longest word.
fn longest_word(text: &str) -> usize {
    text.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

fn grid(columns: &[Column], rows: &[Row], used: &[usize], fit: &Fit, paper: &mut Paper<'_>) -> io::Result<()> {
    let heading: Vec<Vec<String>> =
        used.iter().zip(&fit.widths).map(|(c, w)| wrap(columns.get(*c).map_or("", |column| column.name), *w)).collect();
    print(&heading, &vec![Style::Bold; used.len()], &vec![false; used.len()], fit, paper)?;
    let rule: Vec<Vec<String>> = fit.widths.iter().map(|w| vec!["─".repeat(*w)]).collect();
    let dim = vec![Style::Tone(Tone::Dim); used.len()];
    print(&rule, &dim, &vec![false; used.len()], fit, paper)?;
    let mut was_tall = false;
    for (n, row) in rows.iter().enumerate() {
        let cells: Vec<_> = used.iter().filter_map(|c| row.get(*c)).collect();
        let lines: Vec<Vec<String>> = cells.iter().zip(&fit.widths).map(|(cell, w)| wrap(cell.shown(), *w)).collect();
        let is_tall = lines.iter().any(|l| l.len() > 1);
        if n > 0 && (is_tall || was_tall) {
            paper.end()?;
        }
        was_tall = is_tall;
        let styles: Vec<Style> = cells.iter().map(|cell| Style::Tone(cell.get_tone())).collect();
        let numbers: Vec<bool> = cells.iter().map(|cell| cell.is_number()).collect();
        print(&lines, &styles, &numbers, fit, paper)?;
    }
    Ok(())
}

fn print(cells: &[Vec<String>], styles: &[Style], right: &[bool], fit: &Fit, paper: &mut Paper<'_>) -> io::Result<()> {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for n in 0..height {
        let last = cells.iter().rposition(|lines| lines.get(n).is_some_and(|l| !l.is_empty())).unwrap_or(0);
        for (i, lines) in cells.iter().enumerate().take(last + 1) {
            let text = lines.get(n).map_or("", String::as_str);
            let width = fit.widths.get(i).copied().unwrap_or(0);
            let pad = " ".repeat(width.saturating_sub(text.width()));
            paper.put(&" ".repeat(if i == 0 { 2 } else { fit.gap }), Style::Plain)?;
            let is_right = right.get(i).copied().unwrap_or(false);
            if is_right {
                paper.put(&pad, Style::Plain)?;
            }
            paper.put(text, styles.get(i).copied().unwrap_or(Style::Plain))?;
            if !is_right && i < last {
                paper.put(&pad, Style::Plain)?;
            }
        }
        paper.end()?;
    }
    Ok(())
}

fn blocks(columns: &[Column], rows: &[Row], used: &[usize], paper: &mut Paper<'_>) -> io::Result<()> {
    let name = |c: &usize| columns.get(*c).map_or("", |column| column.name);
    let widest = used.iter().map(|c| name(c).width()).max().unwrap_or(0);
    for (n, row) in rows.iter().enumerate() {
        if n > 0 {
            paper.end()?;
        }
        for c in used {
            let Some(cell) = row.get(*c).filter(|cell| !cell.shown().is_empty()) else { continue };
            let pad = " ".repeat(widest - name(c).width());
            paper.put(&format!("  {}{pad}  ", name(c)), Style::Bold)?;
            paper.flow(cell.shown(), widest + 4, Style::Tone(cell.get_tone()))?;
        }
    }
    Ok(())
}

/// `text` in lines of at most `width` terminal columns (at least 1), broken at spaces, else
/// behind punctuation, else anywhere.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let mut rest = word;
        loop {
            let gap = usize::from(!line.is_empty());
            let need = rest.width();
            if used + gap + need <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.push_str(rest);
                used += gap + need;
                break;
            }
            if used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
                continue;
            }
            let (head, tail) = rest.split_at(break_at(rest, width));
            lines.push(head.to_string());
            rest = tail;
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Where to break a word that is wider than `width`: a byte index greater than 0.
fn break_at(word: &str, width: usize) -> usize {
    let mut used = 0;
    let mut hard = 0;
    let mut soft = 0;
    for (i, c) in word.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width && hard > 0 {
            break;
        }
        hard = i + c.len_utf8();
        if matches!(c, '_' | '-' | '/' | '.' | ',' | '=' | '&' | '?') {
            soft = hard;
        }
    }
    if soft * 3 >= hard { soft } else { hard }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wraps_at_spaces_then_punctuation_then_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("backend.pcap:57", 9), ["backend.", "pcap:57"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_is_lost(text in "[a-z_:日 ]{0,60}", width in 2usize..30) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|l| l.width() <= width));
            let squeeze = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(squeeze(&lines.concat()), squeeze(&text));
        }
    }
}
