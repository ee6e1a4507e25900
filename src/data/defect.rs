/// What is wrong with a table, a row or a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// Not TOML, or not this schema.
    #[error("{message}")]
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// A schema that this version cannot read.
    #[error("schema {found} is not known, expected {expected}")]
    Schema {
        /// The file's.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// Two prefabs, or two names of rows, are the same.
    #[error("duplicate {what} `{name}`")]
    Duplicate {
        /// `prefab` or `name`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two resources of a row have the same key.
    #[error("duplicate resource key `{key}`")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A name that could not be typed.
    #[error("`{name}` is not a name: it is empty, or has a space, a colon or a control character")]
    Name {
        /// The name.
        name: String,
    },
    /// A row without files.
    #[error("row `{row}` has no resources")]
    NoResources {
        /// The row.
        row: String,
    },
    /// A key that could not be typed.
    #[error("`{key}` is not a resource key: it is empty, or has a space or a control character")]
    Key {
        /// The key.
        key: String,
    },
    /// A namespace that is not one plain directory name.
    #[error("resource `{key}`: `{namespace}` is not a directory name")]
    Namespace {
        /// The resource.
        key: String,
        /// Its namespace.
        namespace: String,
    },
    /// A file name that is not a plain relative path.
    #[error("resource `{key}`: `{file}` is not a plain relative path")]
    File {
        /// The resource.
        key: String,
        /// Its file.
        file: String,
    },
    /// An address that nothing can be fetched from.
    #[error("resource `{key}`: `{url}` is no address of http or https")]
    Url {
        /// The resource.
        key: String,
        /// Its address.
        url: String,
    },
    /// A file that nothing pins.
    #[error("resource `{key}` has no sha256")]
    Unpinned {
        /// The resource.
        key: String,
    },
    /// Not a digest.
    #[error("`{found}` is not a {kind}: expected lower-case hexadecimal digits, {digits} of them")]
    Digest {
        /// As written.
        found: String,
        /// `sha256` or `git blob id`.
        kind: &'static str,
        /// How many digits it has.
        digits: usize,
    },
    /// A row of linked bytes and the bytes do not match by file name.
    #[error("no bytes are linked in for `{file}`")]
    NotLinked {
        /// The file that the row names.
        file: String,
    },
    /// Linked bytes that no row names.
    #[error("the bytes linked in as `{file}` belong to no row")]
    UnusedBytes {
        /// The name given to the bytes.
        file: String,
    },
}
