//! Token ids become text and back.
