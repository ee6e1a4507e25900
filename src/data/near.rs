/// How many near names are worth showing.
const SHOWN: usize = 3;

/// The `names` that `wanted` is probably a misspelling of, best first: those within an edit, a transposition being one,
/// for every three characters. Case does not count.
pub(super) fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let within = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<_> = names
        .into_iter()
        .map(|name| (strsim::osa_distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= within)
        .collect();
    near.sort_unstable_by_key(|(distance, name)| (*distance, name.len(), *name));
    near.dedup();
    near.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_find_their_names() {
        let names = [
            "tiny",
            "tiny.en",
            "base",
            "base.en",
            "large",
            "large-v3",
            "large-v3-turbo",
            "turbo",
        ];
        let cases: [(&str, &[&str]); 7] = [
            ("tinny", &["tiny"]),
            ("TINY.EN", &["tiny.en"]),
            ("tiny-en", &["tiny.en"]),
            ("bsae", &["base"]),
            ("largev3", &["large-v3", "large"]),
            ("xyzzy", &[]),
            ("", &[]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(near(wanted, names), expected, "{wanted}");
        }
    }
}
