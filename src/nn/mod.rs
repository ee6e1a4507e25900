//! What several models share.
