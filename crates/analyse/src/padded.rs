//! Things that several threads write, each in lines of its own.

use std::ops::Deref;

/// Whoever writes this takes no line of the cache away from those who read, or write, what stands beside it. Processors
/// fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(T);

impl<T> Padded<T> {
    pub fn new(value: T) -> Padded<T> {
        Padded(value)
    }
}

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
