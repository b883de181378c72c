//! The safe face.
