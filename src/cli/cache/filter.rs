//! Which entries of a listing are shown, and in which order: the grammar of `hf cache ls`.

use std::cmp::Ordering;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use super::ls::Entry;

/// A condition: `size>1GB`, `accessed>30d`, `kit=whisper`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    key: Key,
    op: Op,
    value: Value,
}

/// What an entry is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Size,
    Accessed,
    Modified,
    Name,
    Kit,
    Layout,
    State,
    Refs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Greater,
    Less,
    AtLeast,
    AtMost,
    Equal,
    Unequal,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bytes(u64),
    /// So long ago.
    Age(Duration),
    Text(String),
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "size" => Self::Size,
            "accessed" => Self::Accessed,
            "modified" => Self::Modified,
            "name" => Self::Name,
            "kit" => Self::Kit,
            "layout" | "type" => Self::Layout,
            "state" => Self::State,
            "refs" => Self::Refs,
            _ => {
                return Err(
                    "the keys are size, accessed, modified, name, kit, layout, state, refs"
                        .to_owned(),
                );
            }
        })
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The longer ones first: `>=` begins with `>`.
        const OPS: [(&str, Op); 7] = [
            (">=", Op::AtLeast),
            ("<=", Op::AtMost),
            ("!=", Op::Unequal),
            ("==", Op::Equal),
            (">", Op::Greater),
            ("<", Op::Less),
            ("=", Op::Equal),
        ];
        let found = OPS
            .iter()
            .filter_map(|(sign, op)| Some((text.find(sign)?, *sign, *op)));
        let (at, sign, op) = found
            .min_by_key(|(at, sign, _)| (*at, usize::MAX - sign.len()))
            .ok_or("expected a key, a comparison and a value, as in `size>1GB`")?;
        let key: Key = text[..at].trim().parse()?;
        let value = text[at + sign.len()..].trim();
        let value = match key {
            Key::Size => Value::Bytes(bytes(value)?),
            Key::Accessed | Key::Modified => Value::Age(age(value)?),
            _ if matches!(op, Op::Equal | Op::Unequal) => Value::Text(value.to_owned()),
            _ => return Err("text is compared with `=` or `!=`".to_owned()),
        };
        Ok(Self { key, op, value })
    }
}

impl Filter {
    /// Whether `entry` is one of those; an age is greater the longer ago it was.
    pub(super) fn holds(&self, entry: &Entry, now: SystemTime) -> bool {
        let age_of = |time: Option<SystemTime>| {
            time.map(|time| now.duration_since(time).unwrap_or_default())
        };
        let order = match (&self.value, self.key) {
            (Value::Bytes(bytes), _) => Some(entry.bytes.cmp(bytes)),
            (Value::Age(age), Key::Accessed) => age_of(entry.accessed).map(|it| it.cmp(age)),
            (Value::Age(age), _) => age_of(entry.modified).map(|it| it.cmp(age)),
            (Value::Text(text), Key::Kit) => Some(entry.kit.as_deref().unwrap_or("").cmp(text)),
            (Value::Text(text), Key::Layout) => Some(entry.layout.cmp(text.as_str())),
            (Value::Text(text), Key::State) => Some(entry.state.cmp(text.as_str())),
            (Value::Text(text), Key::Refs) => {
                let has = entry.refs.iter().any(|it| it == text);
                Some(if has { Ordering::Equal } else { Ordering::Less })
            }
            (Value::Text(text), _) => Some(entry.name.as_str().cmp(text)),
        };
        order.is_some_and(|order| match self.op {
            Op::Greater => order.is_gt(),
            Op::Less => order.is_lt(),
            Op::AtLeast => order.is_ge(),
            Op::AtMost => order.is_le(),
            Op::Equal => order.is_eq(),
            Op::Unequal => order.is_ne(),
        })
    }
}

/// An order: `size`, `size:desc`, `accessed:asc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    key: Key,
    descending: bool,
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, direction) = text.split_once(':').unwrap_or((text, ""));
        let key: Key = key.parse()?;
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            // The largest and the latest are what one looks for.
            "" => matches!(key, Key::Size | Key::Accessed | Key::Modified),
            _ => return Err("the directions are asc and desc".to_owned()),
        };
        Ok(Self { key, descending })
    }
}

impl Sort {
    pub(super) fn apply(self, entries: &mut [Entry]) {
        entries.sort_by(|a, b| {
            let order = match self.key {
                Key::Size => a.bytes.cmp(&b.bytes),
                Key::Accessed => a.accessed.cmp(&b.accessed),
                Key::Modified => a.modified.cmp(&b.modified),
                Key::Name => a.name.cmp(&b.name),
                Key::Kit => a.kit.cmp(&b.kit),
                Key::Layout => a.layout.cmp(b.layout),
                Key::State => a.state.cmp(b.state),
                Key::Refs => a.refs.cmp(&b.refs),
            };
            if self.descending {
                order.reverse()
            } else {
                order
            }
        });
    }
}

/// A number of bytes: `500MB`, `2GiB`, `1024`.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KIB", 1 << 10),
        ("MIB", 1 << 20),
        ("GIB", 1 << 30),
    ];
    scaled(text, &UNITS).ok_or_else(|| format!("`{text}` is not a size, as `500MB`"))
}

/// A time that has passed: `30d`, `12h`, `90s`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 7] = [
        ("S", 1),
        ("M", 60),
        ("H", 3_600),
        ("D", 86_400),
        ("W", 604_800),
        ("MO", 2_592_000),
        ("Y", 31_536_000),
    ];
    let seconds = scaled(text, &UNITS);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("`{text}` is not a time, as `30d`"))
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_uppercase();
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.parse().ok()?;
    let scaled = number * *scale as f64;
    (scaled.is_finite() && scaled >= 0.0).then_some(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: u64, days: u64) -> Entry {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 * 86_400 - days * 86_400);
        Entry {
            name: "tiny".to_owned(),
            layout: "pinned",
            kit: Some("whisper".to_owned()),
            bytes,
            accessed: Some(then),
            modified: Some(then),
            refs: vec!["main".to_owned()],
            ..Entry::default()
        }
    }

    #[test]
    fn conditions_are_compared_in_their_units() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 * 86_400);
        let entry = entry(2_000_000, 40);
        let cases = [
            ("size>1MB", true),
            ("size>=2MB", true),
            ("size<1.5MiB", false),
            ("size = 2000000", true),
            ("accessed>30d", true),
            ("modified<1h", false),
            ("kit=whisper", true),
            ("type!=pinned", false),
            ("refs=main", true),
            ("name==tiny", true),
        ];
        for (text, expected) in cases {
            let filter: Filter = text.parse().unwrap();
            assert_eq!(filter.holds(&entry, now), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "",
            "size",
            "size>",
            "size>x",
            "color=red",
            "name>a",
            "accessed>30",
            "size>1e999GB",
        ] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
        for text in ["color", "size:up"] {
            assert!(text.parse::<Sort>().is_err(), "{text}");
        }
    }

    #[test]
    fn largest_comes_first_unless_told_otherwise() {
        let sorted = |order: &str| {
            let mut entries = vec![entry(1, 0), entry(3, 0), entry(2, 0)];
            order.parse::<Sort>().unwrap().apply(&mut entries);
            entries.iter().map(|entry| entry.bytes).collect::<Vec<_>>()
        };
        assert_eq!(sorted("size"), [3, 2, 1]);
        assert_eq!(sorted("size:asc"), [1, 2, 3]);
    }
}
