//! Names become local files.
