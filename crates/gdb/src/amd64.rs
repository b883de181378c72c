//! The machine as gdb is told of it: names and sizes of registers, and a thread's registers in that
//! order. What is not known (x87, mxcsr) is said to be unavailable, not zero.

use gdbstub::arch::{Arch, Registers as GdbRegisters};
use raddle_wire::debug::Registers;
use std::sync::LazyLock;

/// x86-64 with SSE and segment bases, for Linux.
#[derive(Debug)]
pub enum Amd64 {}

impl Arch for Amd64 {
    type Usize = u64;
    type Registers = ThreadRegisters;
    type BreakpointKind = usize;
    type RegId = ();

    fn target_description_xml() -> Option<&'static str> {
        static XML: LazyLock<String> = LazyLock::new(description);
        Some(&XML)
    }
}

/// A thread's registers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadRegisters(pub Registers);

/// gdb's order of the general registers, and where each is in ours.
const GENERAL: [(&str, usize); 16] = [
    ("rax", 0),
    ("rbx", 3),
    ("rcx", 1),
    ("rdx", 2),
    ("rsi", 6),
    ("rdi", 7),
    ("rbp", 5),
    ("rsp", 4),
    ("r8", 8),
    ("r9", 9),
    ("r10", 10),
    ("r11", 11),
    ("r12", 12),
    ("r13", 13),
    ("r14", 14),
    ("r15", 15),
];
/// Segment selectors of every 64-bit program under Linux.
const SEGMENTS: [(&str, u32); 6] =
    [("cs", 0x33), ("ss", 0x2b), ("ds", 0), ("es", 0), ("fs", 0), ("gs", 0)];
const X87: [&str; 8] = ["fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"];

impl GdbRegisters for ThreadRegisters {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.0.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let Registers { general, pc, flags, fs_base, vectors } = &self.0;
        let mut known = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        GENERAL.iter().for_each(|(_, at)| known(&general[*at].to_le_bytes()));
        known(&pc.to_le_bytes());
        known(&(*flags as u32).to_le_bytes());
        SEGMENTS.iter().for_each(|(_, value)| known(&value.to_le_bytes()));
        (0..8 * 10 + X87.len() * 4).for_each(|_| write_byte(None));
        let mut known = |bytes: &[u8]| bytes.iter().for_each(|byte| write_byte(Some(*byte)));
        vectors.iter().for_each(|vector| known(&vector.to_le_bytes()));
        (0..4).for_each(|_| write_byte(None));
        // No system call is to be made again.
        u64::MAX.to_le_bytes().iter().for_each(|byte| write_byte(Some(*byte)));
        // Zero is what a thread has whose base has not been seen yet.
        for byte in fs_base.to_le_bytes() {
            write_byte((*fs_base != 0).then_some(byte));
        }
        (0..8).for_each(|_| write_byte(Some(0)));
    }

    fn gdb_deserialize(&mut self, _: &[u8]) -> Result<(), ()> {
        // Registers are not set: see `Debuggee::write_registers`.
        Err(())
    }
}

/// The target description: gdb's own features of the same names, written out.
fn description() -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
         <architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>\
         <feature name=\"org.gnu.gdb.i386.core\"><flags id=\"i386_eflags\" size=\"4\">",
    );
    let flags = [
        ("CF", 0),
        ("", 1),
        ("PF", 2),
        ("AF", 4),
        ("ZF", 6),
        ("SF", 7),
        ("TF", 8),
        ("IF", 9),
        ("DF", 10),
        ("OF", 11),
        ("NT", 14),
        ("RF", 16),
        ("VM", 17),
        ("AC", 18),
        ("VIF", 19),
        ("VIP", 20),
        ("ID", 21),
    ];
    for (name, bit) in flags {
        xml.push_str(&format!("<field name=\"{name}\" start=\"{bit}\" end=\"{bit}\"/>"));
    }
    xml.push_str("</flags>");
    let register = |name: &str, bits: u32, kind: &str| {
        format!("<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\"/>")
    };
    for (name, _) in GENERAL {
        let kind = if matches!(name, "rbp" | "rsp") { "data_ptr" } else { "int64" };
        xml.push_str(&register(name, 64, kind));
    }
    xml.push_str(&register("rip", 64, "code_ptr"));
    xml.push_str(&register("eflags", 32, "i386_eflags"));
    for (name, _) in SEGMENTS {
        xml.push_str(&register(name, 32, "int32"));
    }
    for number in 0..8 {
        xml.push_str(&register(&format!("st{number}"), 80, "i387_ext"));
    }
    for name in X87 {
        xml.push_str(&register(name, 32, "int"));
    }
    xml.push_str(
        "</feature><feature name=\"org.gnu.gdb.i386.sse\">\
         <vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>\
         <vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>\
         <vector id=\"v16i8\" type=\"int8\" count=\"16\"/>\
         <vector id=\"v8i16\" type=\"int16\" count=\"8\"/>\
         <vector id=\"v4i32\" type=\"int32\" count=\"4\"/>\
         <vector id=\"v2i64\" type=\"int64\" count=\"2\"/>\
         <union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/>\
         <field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>\
         <field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>\
         <field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/>\
         </union>",
    );
    for number in 0..16 {
        xml.push_str(&register(&format!("xmm{number}"), 128, "vec128"));
    }
    xml.push_str(&register("mxcsr", 32, "int"));
    // Without this one gdb does not believe that it is Linux, and finds no libraries.
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.linux\">");
    xml.push_str(&register("orig_rax", 64, "int"));
    xml.push_str("</feature><feature name=\"org.gnu.gdb.i386.segments\">");
    for name in ["fs_base", "gs_base"] {
        xml.push_str(&register(name, 64, "int"));
    }
    xml.push_str("</feature></target>");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of all registers in the description.
    fn described() -> usize {
        let xml = description();
        let bits = xml.split("bitsize=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        bits.map(|bits| bits.parse::<usize>().unwrap()).sum()
    }

    #[test]
    fn what_is_written_is_what_is_described() {
        let mut registers = ThreadRegisters::default();
        registers.0.general = std::array::from_fn(|i| i as u64);
        registers.0.pc = 0x99;
        registers.0.fs_base = 0x77;
        registers.0.vectors[0] = 0x55;
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.push(byte));
        assert_eq!(bytes.len() * 8, described());
        // rbx is gdb's second and the hardware's fourth.
        assert_eq!(bytes[8], Some(3));
        assert_eq!(bytes[16 * 8], Some(0x99));
        let xmm0 = 16 * 8 + 8 + 4 + 24 + 80 + 32;
        assert_eq!(bytes[xmm0], Some(0x55));
        assert_eq!(bytes[xmm0 - 1], None);
        assert_eq!(bytes[bytes.len() - 16], Some(0x77));
    }
}
