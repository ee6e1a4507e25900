//! Which paths a hub may list.

use std::collections::HashMap;

use crate::data::resource::is_safe_path;

/// The first of `paths` that must not become a file, with the reason; `None` when all may.
///
/// A path must stay where it is put, on every platform, and may not take the place of another where the file system
/// does not tell upper case from lower case.
pub(super) fn first_unsafe<'a>(
    paths: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, &'static str)> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for path in paths {
        if !is_safe_path(path) {
            return Some((path, "it would leave its directory or is no plain name"));
        }
        // Each directory counts too: `A/x` and `a/y` would share one.
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = &path[..end];
            let known = seen.entry(part.to_lowercase()).or_insert(part);
            if *known != part {
                return Some((path, "it differs from another only in case"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_pass() {
        let good = [
            "config.json",
            "1_Pooling/config.json",
            "a/b/c.txt",
            ".gitattributes",
        ];
        assert_eq!(first_unsafe(good), None);
        for bad in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            r"C:\x",
            r"a\..\x",
            "a//b",
            "con.txt",
            "a/aux",
            "x\0",
            "",
        ] {
            assert_eq!(
                first_unsafe(["config.json", bad]).map(|(path, _)| path),
                Some(bad)
            );
        }
    }

    #[test]
    fn names_that_differ_only_in_case_are_refused() {
        for bad in [["a.json", "A.json"], ["A/x", "a/y"], ["ä", "Ä"]] {
            assert!(first_unsafe(bad).is_some(), "{bad:?}");
        }
        assert_eq!(first_unsafe(["a/x", "a/y", "a/x"]), None);
    }
}
