//! Analysers: pure state machines over events. Knows the model only.
