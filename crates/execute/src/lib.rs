//! The primitive: launch the target under the engine, supervise it, read what the probe wrote.
