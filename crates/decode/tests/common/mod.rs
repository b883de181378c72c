//! What the tests share: bytes from text, and a processor's registers made by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use raddle_decode::{Gpr, Registers, Segment};

pub fn hex(text: &str) -> Vec<u8> {
    text.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}

/// Where the instructions lie, for those relative to it.
pub const IP: u64 = 0x40_1000;

pub const FS_BASE: u64 = 0x7000_0000_0000;

/// All zero but what a test sets.
#[derive(Clone)]
pub struct Machine {
    gpr: [u64; 16],
    vectors: [[u8; 64]; 32],
    masks: [u64; 8],
}

impl Machine {
    pub fn new() -> Self {
        Machine { gpr: [0; 16], vectors: [[0; 64]; 32], masks: [0; 8] }
    }

    pub fn gpr(mut self, n: usize, value: u64) -> Self {
        self.gpr[n] = value;
        self
    }

    pub fn mask(mut self, n: usize, value: u64) -> Self {
        self.masks[n] = value;
        self
    }

    /// Sets a vector's first elements; the rest of it is filled with ones, so that looking at what
    /// does not take part shows.
    pub fn bytes(mut self, n: usize, elements: &[i8]) -> Self {
        self.vectors[n] = [0xff; 64];
        for (to, from) in self.vectors[n].iter_mut().zip(elements) {
            *to = *from as u8;
        }
        self
    }

    pub fn dwords(self, n: usize, elements: &[i32]) -> Self {
        let bytes: Vec<i8> =
            elements.iter().flat_map(|e| e.to_le_bytes()).map(|b| b as i8).collect();
        self.bytes(n, &bytes)
    }

    pub fn qwords(self, n: usize, elements: &[i64]) -> Self {
        let bytes: Vec<i8> =
            elements.iter().flat_map(|e| e.to_le_bytes()).map(|b| b as i8).collect();
        self.bytes(n, &bytes)
    }
}

impl Registers for Machine {
    fn gpr(&self, r: Gpr) -> u64 {
        self.gpr[usize::from(r.0)]
    }

    fn segment_base(&self, s: Segment) -> u64 {
        match s {
            Segment::Fs => FS_BASE,
            Segment::Gs => panic!("no test uses gs"),
        }
    }

    fn vector(&self, n: u8) -> [u8; 64] {
        self.vectors[usize::from(n)]
    }

    fn mask(&self, k: u8) -> u64 {
        assert_ne!(k, 0, "k0 is no mask");
        self.masks[usize::from(k)]
    }
}
