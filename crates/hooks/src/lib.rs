//! Hook files: which functions synchronise, allocate or touch memory, and how. Parse, check, merge.
