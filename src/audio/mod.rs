//! Audio becomes features.
