//! Results as files in a directory, one name an input, whole or not at all.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::output::Format;

/// A directory that results go to.
pub(crate) struct OutputDir {
    dir: PathBuf,
    /// Stems that an input of this run has.
    taken: HashSet<String>,
    /// The inputs themselves, which no result may replace.
    inputs: HashSet<PathBuf>,
}

impl OutputDir {
    /// Makes `dir` where there is none. `inputs` are the files that this run reads.
    ///
    /// # Errors
    /// [`Error::Write`] when it cannot be made, or is something else than a directory.
    pub(crate) fn create<'a>(
        dir: &Path,
        inputs: impl Iterator<Item = &'a Path>,
    ) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|source| {
            // "File exists" would not say what is wrong with it.
            let source = if dir.exists() {
                io::ErrorKind::NotADirectory.into()
            } else {
                source
            };
            Error::Write {
                path: dir.to_owned(),
                source,
            }
        })?;
        let inputs = inputs.filter_map(|path| path.canonicalize().ok()).collect();
        Ok(Self {
            dir: dir.to_owned(),
            taken: HashSet::new(),
            inputs,
        })
    }

    /// The stem for the results of the input called `name`: that of `name` itself, or `stem.2`, `stem.3`, … when an
    /// earlier input has it or a result in one of `formats` would replace an input.
    pub(crate) fn stem(&mut self, name: &Path, formats: &[Format]) -> String {
        let own = name.file_stem().map_or_else(
            || "output".into(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        let mut stem = own.clone();
        let mut number = 2_u64;
        while self.taken.contains(&stem) || self.replaces_an_input(&stem, formats) {
            stem = format!("{own}.{number}");
            number += 1;
        }
        self.taken.insert(stem.clone());
        stem
    }

    /// Writes `text` as the result of `stem` in `format`, replacing an older result in one step, and gives the path.
    ///
    /// # Errors
    /// [`Error::Write`]; then no file of that name is new.
    pub(crate) fn write(&self, stem: &str, format: Format, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(stem, format);
        match write_whole(&self.dir, &path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn replaces_an_input(&self, stem: &str, formats: &[Format]) -> bool {
        let mut real_paths = formats
            .iter()
            .filter_map(|format| self.path(stem, *format).canonicalize().ok());
        real_paths.any(|path| self.inputs.contains(&path))
    }

    fn path(&self, stem: &str, format: Format) -> PathBuf {
        self.dir.join(format!("{stem}.{}", format.extension()))
    }
}

fn write_whole(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pretrained-");
    // A temporary file is private by default; a result is an ordinary file, as the umask makes it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(dir)?;
    file.as_file_mut().write_all(text.as_bytes())?; // whose errors do not name the temporary file
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn stems(dir: &Path, inputs: &[&str]) -> Vec<String> {
        let mut output = OutputDir::create(dir, inputs.iter().map(Path::new)).unwrap();
        inputs
            .iter()
            .map(|input| output.stem(Path::new(input), &[Format::Srt]))
            .collect()
    }

    #[test]
    fn inputs_of_one_stem_get_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let inputs = [
            "talk.wav",
            "other/talk.mp3",
            "talk.2.wav",
            "talk.ogg",
            "a.b.wav",
            ".wav",
        ];
        assert_eq!(
            stems(dir.path(), &inputs),
            ["talk", "talk.2", "talk.2.2", "talk.3", "a.b", ".wav"]
        );
    }

    #[test]
    fn an_input_is_never_replaced_by_its_own_result() {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("talk.srt");
        fs::write(&input, "audio under an odd name").unwrap();
        assert_eq!(stems(dir.path(), &[input.to_str().unwrap()]), ["talk.2"]);
    }

    #[test]
    fn a_result_replaces_an_older_one_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let nested = dir.path().join("a/b");
        let output = OutputDir::create(&nested, std::iter::empty()).unwrap();
        for text in ["old", "new"] {
            let path = output.write("talk", Format::Txt, text).unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        assert_eq!(names(&nested), ["talk.txt"]);
    }

    #[test]
    fn a_name_that_is_taken_by_a_directory_is_an_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("talk.txt")).unwrap();
        let output = OutputDir::create(dir.path(), std::iter::empty()).unwrap();
        let error = output.write("talk", Format::Txt, "text").unwrap_err();
        assert!(error.to_string().contains("talk.txt"), "{error}");
        assert_eq!(names(dir.path()), ["talk.txt"]);
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(
            OutputDir::create(&file, std::iter::empty()),
            Err(Error::Write { .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_result_is_as_readable_as_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let ordinary = dir.path().join("ordinary");
        fs::write(&ordinary, "").unwrap();
        let output = OutputDir::create(dir.path(), std::iter::empty()).unwrap();
        let result = output.write("talk", Format::Txt, "text").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&result), mode(&ordinary));
    }
}
