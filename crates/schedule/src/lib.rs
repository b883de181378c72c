//! Scheduling policies: pure deciders. Knows the model only.
