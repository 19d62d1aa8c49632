//! Tables of 80 columns: all but the last column are as wide as what is in them, and the last one is wrapped into what is left.

/// Columns of a terminal that everybody has.
pub const WIDTH: usize = 80;

/// The least that the last column gets; names before it are cut to leave it so much.
const LAST: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "a cell for each column");
        self.rows.push(cells.into());
    }

    pub fn text(&self) -> String {
        let last = self.columns.len() - 1;
        let headings = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&headings).chain(&self.rows).collect();
        let mut widths: Vec<usize> =
            (0..last).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
        let taken = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        while taken(&widths) + LAST > WIDTH {
            let Some(widest) = widths.iter_mut().max() else { break };
            *widest -= 1;
        }
        let indent = taken(&widths);
        let mut text = String::new();
        for row in rows {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = cut(&row[column], width);
                match self.columns[column].1 {
                    Align::Left => line += &format!("{cell:width$}  "),
                    Align::Right => line += &format!("{cell:>width$}  "),
                }
            }
            let mut pieces = wrap(&row[last], WIDTH - indent).into_iter();
            line += &pieces.next().unwrap_or_default();
            text += line.trim_end();
            text.push('\n');
            for piece in pieces {
                text += &format!("{:indent$}{piece}\n", "");
            }
        }
        text
    }
}

/// At most so many characters, the last one a mark if some are left out.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of at most so many characters, broken at spaces, within a word only if it is longer than a line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        let characters: Vec<char> = word.chars().collect();
        for (at, piece) in characters.chunks(width).enumerate() {
            if length > 0 && (at > 0 || length + 1 + piece.len() > width) {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.extend(piece);
            length += piece.len();
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_within_the_width_and_nothing_of_the_last_column_is_lost() {
        let mut table = Table::new(&[("backend", Align::Left), ("n", Align::Right), ("why", Align::Left)]);
        let why = "a reason of many words, one of them /a/path/that/is/longer/than/any/line/of/a/terminal/that/there/ever/was/before/us";
        table.row(["cuda".repeat(30), "1".to_owned(), why.to_owned()]);
        let text = table.text();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert!(text.contains('…') && letters(&text).contains("areason") && letters(&text).ends_with("/before/us"), "{text}");
    }

    #[test]
    fn words_are_wrapped_at_spaces() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
