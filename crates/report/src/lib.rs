//! Rendering: events and findings as text and JSON. Knows the model only.
