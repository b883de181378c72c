//! Every AVX-512 instruction there is, with and without a mask: what is touched with all lanes on
//! must be what the instruction touches unmasked, with none on nothing, and lane by lane it must add
//! up. A wrong element size, count of elements or count of lanes breaks one of these.

mod common;

use common::{IP, Machine};
use raddle_decode::{Decoded, Extent, decode, lanes};
use raddle_model::Address;

const RDI: usize = 7;
const AT: u64 = 0x10_0000;

/// The fields of an EVEX prefix, the operand at `[rdi]`.
#[derive(Debug, Clone, Copy)]
struct Evex {
    map: u8,
    prefix: u8,
    w: u8,
    length: u8,
    broadcast: u8,
    opcode: u8,
    /// The register field, which is part of some opcodes.
    reg: u8,
}

impl Evex {
    fn bytes(self, mask: u8, other: u8) -> Vec<u8> {
        vec![
            0x62,
            0xf0 | self.map,
            self.w << 7 | other << 3 | 4 | self.prefix,
            self.length << 5 | self.broadcast << 4 | 8 | mask,
            self.opcode,
            self.reg << 3 | 7,
            0, // an immediate, for those that have one
        ]
    }

    /// Masked by `k1`, and unmasked. The second source is either a register or must be none.
    fn decoded(self) -> Option<(Vec<u8>, Decoded, Decoded)> {
        [0b1110, 0b1111].into_iter().find_map(|other| {
            let masked = self.bytes(1, other);
            let plain = decode(&self.bytes(0, other), IP)?;
            Some((masked.clone(), decode(&masked, IP)?, plain))
        })
    }

    fn all() -> impl Iterator<Item = Evex> {
        let maps = (1..=6).flat_map(|map| (0..=255).map(move |opcode| (map, opcode)));
        maps.flat_map(|(map, opcode)| {
            // Shifts by an immediate share their opcodes.
            let regs = if (0x71..=0x73).contains(&opcode) { 8 } else { 1 };
            (0..4 * 2 * 3 * 2 * regs).map(move |n| Evex {
                map,
                opcode,
                prefix: (n % 4) as u8,
                w: (n / 4 % 2) as u8,
                length: (n / 8 % 3) as u8,
                broadcast: (n / 24 % 2) as u8,
                reg: (n / 48) as u8,
            })
        })
    }
}

/// The bytes touched from `AT` on, as a bit each, with this mask.
fn touched(bytes: &[u8], mask: u64) -> u64 {
    let machine = Machine::new().gpr(RDI, AT).mask(1, mask);
    lanes(bytes, IP, &machine).into_iter().fold(0, |all, (_, Address(address), size)| {
        let first = address - AT;
        assert!(first + u64::from(size) <= 64, "{bytes:02x?} touches {first}..{size}");
        all | (u64::MAX >> (64 - size)) << first
    })
}

#[test]
fn lanes_add_up_to_the_whole() {
    let mut checked = 0;
    for evex in Evex::all() {
        let Some((bytes, masked, plain)) = evex.decoded() else { continue };
        let ([masked], [plain]) = (&masked.operands[..], &plain.operands[..]) else { continue };
        assert_eq!(plain.extent, Extent::Once, "{bytes:02x?}");
        assert_eq!((masked.kind, masked.address), (plain.kind, plain.address), "{bytes:02x?}");
        if masked.extent == Extent::Once {
            assert_eq!(masked.size, plain.size, "{bytes:02x?}");
            continue;
        }
        checked += 1;
        assert_eq!(masked.extent, Extent::Lanes, "{bytes:02x?}");
        let whole = u64::MAX >> (64 - plain.size);
        assert_eq!(touched(&bytes, u64::MAX), whole, "{bytes:02x?}");
        assert_eq!(touched(&bytes, 0), 0, "{bytes:02x?}");
        let single = (0..64).fold(0, |all, lane| all | touched(&bytes, 1 << lane));
        // Of compress and expand, one lane alone is always the first element.
        let compressed = touched(&bytes, 0b10) == u64::MAX >> (64 - masked.size);
        assert!(single == whole || compressed, "{bytes:02x?}: {single:#x}");
    }
    // iced 1.22 knows this many forms; fewer would mean that the loop above looks past them.
    assert!(checked > 1000, "{checked}");
}

#[test]
fn an_embedded_broadcast_has_as_many_lanes_as_the_full_vector() {
    let mut checked = 0;
    for evex in Evex::all().filter(|evex| evex.broadcast == 1) {
        let Some((bytes, masked, _)) = evex.decoded() else { continue };
        let Some((full, ..)) = (Evex { broadcast: 0, ..evex }).decoded() else { continue };
        let [operand] = &masked.operands[..] else { continue };
        if operand.extent == Extent::Lanes {
            checked += 1;
            let lanes = |bytes: &[u8]| (0..64).filter(|&n| touched(bytes, 1 << n) != 0).count();
            assert_eq!(lanes(&bytes), lanes(&full), "{bytes:02x?}");
        }
    }
    assert!(checked > 400, "{checked}");
}
