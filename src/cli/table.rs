//! Columns for people.

use std::time::SystemTime;

use super::out::printable;

/// `rows` under `header`, two blanks between columns; a column of numbers, or of `-` where there is none, is set flush
/// right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().map(|cell| printable(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let columns: Vec<Column> = header
        .iter()
        .enumerate()
        .map(|(at, title)| Column::new(at, title, &rows))
        .collect();
    let mut text = String::new();
    let header: Vec<_> = header.iter().map(|title| (*title).to_owned()).collect();
    for row in std::iter::once(&header).chain(&rows) {
        let cells: Vec<_> = columns
            .iter()
            .zip(row)
            .map(|(column, cell)| column.pad(cell))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

struct Column {
    width: usize,
    numeric: bool,
}

impl Column {
    fn new(at: usize, title: &str, rows: &[Vec<String>]) -> Self {
        let cells = || rows.iter().filter_map(|row| row.get(at));
        Self {
            width: cells()
                .map(|cell| cell.chars().count())
                .chain([title.chars().count()])
                .max()
                .unwrap_or(0),
            numeric: cells()
                .all(|cell| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit())),
        }
    }

    fn pad(&self, cell: &str) -> String {
        let width = self.width;
        if self.numeric {
            format!("{cell:>width$}")
        } else {
            format!("{cell:<width$}")
        }
    }
}

/// `n` with a comma between groups of three digits.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `bytes` in the decimal unit that suits it: `75.6 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes as f64 >= *unit);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit),
    )
}

/// How long ago `time` was, in the unit that suits it: `3 days ago`.
pub(crate) fn ago(time: SystemTime, now: SystemTime) -> String {
    const UNITS: [(u64, &str); 4] = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let seconds = now.duration_since(time).map_or(0, |since| since.as_secs());
    match UNITS.iter().find(|(unit, _)| seconds >= *unit) {
        None => "now".to_owned(),
        Some((unit, name)) => {
            let n = seconds / unit;
            format!("{n} {name}{} ago", if n == 1 { "" } else { "s" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let rows =
            [["tiny", "37"], ["large-v3", "1543"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            table(&["name", "params"], &rows),
            "name      params\ntiny          37\nlarge-v3    1543\n"
        );
        assert_eq!(table(&["name"], &[]), "name\n");
        let gap = ["1,000", "-"].map(|cell| vec![cell.to_owned()]);
        assert_eq!(table(&["n"], &gap), "    n\n1,000\n    -\n");
    }

    #[test]
    fn times_are_told_in_their_unit() {
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let cases = [
            (0, "now"),
            (1, "1 second ago"),
            (119, "1 minute ago"),
            (200_000, "2 days ago"),
        ];
        for (seconds, expected) in cases {
            let then = now - std::time::Duration::from_secs(seconds);
            assert_eq!(ago(then, now), expected);
        }
        assert_eq!(ago(now, SystemTime::UNIX_EPOCH), "now");
    }

    #[test]
    fn numbers_read_easily() {
        assert_eq!(
            [0, 999, 1000, 37_184_640].map(grouped),
            ["0", "999", "1,000", "37,184,640"]
        );
        assert_eq!(
            [999, 1500, 75_571_315, 3_090_000_000].map(size),
            ["999 B", "1.5 kB", "75.6 MB", "3.1 GB"]
        );
    }
}
