/// Who watches files come in. Calls come from several threads at once.
pub trait Observer: Sync {
    /// `files` files of `bytes` bytes together, as far as their lengths are known, are going to be fetched; `from` is the
    /// address that the first will be asked of.
    fn begin(&self, _files: usize, _bytes: u64, _from: &str) {}

    /// The file `name`, of `size` bytes if that is known, is coming in; what arrives is told under `id`.
    fn open(&self, _id: usize, _name: &str, _size: Option<u64>) {}

    /// `bytes` more of it are here; negative when some must come again.
    fn advance(&self, _id: usize, _bytes: i64) {}

    /// Nothing more comes of it.
    fn close(&self, _id: usize) {}

    /// Something worth knowing happened that stops nothing.
    fn note(&self, _text: &str) {}
}

/// Nobody watches.
impl Observer for () {}
