//! What the register values choose: gathers, scatters, masked moves, bit strings, `xlat`, `clzero`.
//! The bytes are GNU as's; AVX-512 needs no processor that has it.

mod common;

use common::{FS_BASE, IP, Machine, hex};
use raddle_decode::lanes;
use raddle_model::AccessKind::{self, AtomicUpdate, Read, Write};
use raddle_model::Address;

const RAX: usize = 0;
const RCX: usize = 1;
const RBX: usize = 3;
const RSI: usize = 6;
const RDI: usize = 7;
const R9: usize = 9;
const R11: usize = 11;

/// A lane of a vector mask that is on: only the top bit counts.
const ON: i32 = i32::MIN;
/// One that is off: all bits but the top one.
const OFF: i32 = i32::MAX;

fn touched(bytes: &str, machine: &Machine) -> Vec<(AccessKind, u64, u32)> {
    let touched = lanes(&hex(bytes), IP, machine);
    touched.into_iter().map(|(kind, Address(address), size)| (kind, address, size)).collect()
}

#[test]
fn gather_with_a_vector_mask() {
    // vpgatherdd ymm0, [rdi+ymm1*4+0x10], ymm2
    let gather = "c4 e2 6d 90 44 8f 10";
    let machine = Machine::new()
        .gpr(RDI, 0x1000)
        .dwords(1, &[0, 1, 2, 100, -1, 7, 8, 9])
        .dwords(2, &[ON, ON, OFF, ON, ON, OFF, OFF, ON]);
    let expected = [
        (Read, 0x1010, 8), // lanes 0 and 1, side by side
        (Read, 0x11a0, 4),
        (Read, 0x100c, 4), // a negative index
        (Read, 0x1034, 4),
    ];
    assert_eq!(touched(gather, &machine), expected);
}

#[test]
fn gather_of_one_place_by_all_lanes_is_one_read() {
    // vpgatherdd ymm0, [rdi+ymm1*4+0x10], ymm2
    let machine = Machine::new().gpr(RDI, 0x1000).dwords(1, &[3; 8]).dwords(2, &[ON; 8]);
    assert_eq!(touched("c4 e2 6d 90 44 8f 10", &machine), [(Read, 0x101c, 4)]);
}

#[test]
fn gather_has_as_many_lanes_as_the_shorter_of_data_and_index() {
    let machine = Machine::new().gpr(RDI, 0x1000);
    // vgatherqpd ymm0, [rdi+ymm1*8], ymm2
    let wide = machine.clone().qwords(1, &[0, 10, -10, 30]).qwords(2, &[-1, 0, -1, -1]);
    assert_eq!(
        touched("c4 e2 ed 93 04 cf", &wide),
        [(Read, 0x1000, 8), (Read, 0xfb0, 8), (Read, 0x10f0, 8)]
    );
    // vpgatherqd xmm0, [rdi+ymm1*4], xmm2: four of four bytes
    let four = machine.clone().qwords(1, &[0, 10, 20, 30]).dwords(2, &[ON, ON, OFF, ON]);
    assert_eq!(
        touched("c4 e2 6d 91 04 8f", &four),
        [(Read, 0x1000, 4), (Read, 0x1028, 4), (Read, 0x1078, 4)]
    );
    // vpgatherqd xmm0, [rdi+xmm1*4], xmm2: two of four bytes, though the mask has room for four
    let two = machine.clone().qwords(1, &[0, 10]).dwords(2, &[ON; 4]);
    assert_eq!(touched("c4 e2 69 91 04 8f", &two), [(Read, 0x1000, 4), (Read, 0x1028, 4)]);
    // vpgatherdq ymm0, [rdi+xmm1*8], ymm2: four of eight bytes by 32-bit indices
    let mixed = machine.clone().dwords(1, &[0, -1, 2, 4]).qwords(2, &[0, -1, -1, -1]);
    assert_eq!(
        touched("c4 e2 ed 90 04 cf", &mixed),
        [(Read, 0xff8, 8), (Read, 0x1010, 8), (Read, 0x1020, 8)]
    );
}

#[test]
fn gather_with_a_narrow_address_wraps_at_four_gigabytes() {
    // vpgatherdd ymm0, [edi+ymm1*4], ymm2
    let machine = Machine::new()
        .gpr(RDI, 0xdead_0000_0010)
        .dwords(1, &[-8, 0])
        .dwords(2, &[ON, ON, OFF, OFF, OFF, OFF, OFF, OFF]);
    assert_eq!(
        touched("67 c4 e2 6d 90 04 8f", &machine),
        [(Read, 0xffff_fff0, 4), (Read, 0x10, 4)]
    );
}

#[test]
fn gather_and_scatter_with_a_mask_register() {
    let machine = Machine::new().gpr(RDI, 0x1000).gpr(R9, 0x2000);
    // vpgatherdq zmm0{k1}, [rdi+ymm1*8]: eight lanes, whatever the mask has above them
    let gather =
        machine.clone().dwords(1, &[0, 1, 9, 9, 9, 9, 9, 50]).mask(1, 0xffff_ffff_ffff_ff83);
    assert_eq!(touched("62 f2 fd 49 90 04 cf", &gather), [(Read, 0x1000, 16), (Read, 0x1190, 8)]);
    // vpgatherdd zmm16{k2}, [r9+zmm31*2]: the upper registers
    let upper = machine.clone().dwords(31, &[5; 16]).mask(2, 0x8000);
    assert_eq!(touched("62 82 7d 42 90 04 79", &upper), [(Read, 0x200a, 4)]);
    // vpscatterdd fs:[rdi+zmm1*4]{k1}, zmm0
    let scatter = machine.clone().dwords(1, &[7, 8, 9]).mask(1, 0b101);
    assert_eq!(
        touched("64 62 f2 7d 49 a0 04 8f", &scatter),
        [(Write, FS_BASE + 0x101c, 4), (Write, FS_BASE + 0x1024, 4)]
    );
    // vpscatterqd [rdi+zmm1*1]{k1}, ymm0
    let scatter = machine.clone().qwords(1, &[0, 4, 8, 12, 1 << 40]).mask(1, 0b1_1111);
    assert_eq!(
        touched("62 f2 7d 49 a1 04 0f", &scatter),
        [(Write, 0x1000, 16), (Write, 0x1000 + (1 << 40), 4)]
    );
    let none = scatter.mask(1, 0);
    assert_eq!(touched("62 f2 7d 49 a1 04 0f", &none), []);
}

#[test]
fn vector_masked_moves() {
    let machine = Machine::new().gpr(RSI, 0x1000);
    // vmaskmovps ymm0, ymm1, [rsi]
    let load = machine.clone().dwords(1, &[OFF, ON, ON, OFF, OFF, OFF, OFF, ON]);
    assert_eq!(touched("c4 e2 75 2c 06", &load), [(Read, 0x1004, 8), (Read, 0x101c, 4)]);
    // vmaskmovpd [rsi], xmm1, xmm0: two lanes; the rest of the register is none of its business
    let store = machine.clone().qwords(1, &[i64::MAX, i64::MIN]);
    assert_eq!(touched("c4 e2 71 2f 06", &store), [(Write, 0x1008, 8)]);
    // vpmaskmovq [rsi], ymm1, ymm0
    let store = machine.clone().qwords(1, &[-1, -1, 0, -1]);
    assert_eq!(touched("c4 e2 f5 8e 06", &store), [(Write, 0x1000, 16), (Write, 0x1018, 8)]);
    // vpmaskmovd xmm0, xmm9, [rsi]
    let load = machine.clone().dwords(9, &[ON; 4]);
    assert_eq!(touched("c4 e2 31 8c 06", &load), [(Read, 0x1000, 16)]);
    assert_eq!(touched("c4 e2 31 8c 06", &machine), []);
}

#[test]
fn byte_masked_stores() {
    let machine = Machine::new().gpr(RDI, 0xaaaa_0000_1000);
    let mut mask = [127; 16];
    mask[3] = -1;
    mask[4] = -128;
    mask[15] = -1;
    // maskmovdqu xmm0, xmm1
    assert_eq!(
        touched("66 0f f7 c1", &machine.clone().bytes(1, &mask)),
        [(Write, 0xaaaa_0000_1003, 2), (Write, 0xaaaa_0000_100f, 1)]
    );
    // vmaskmovdqu xmm0, xmm3
    assert_eq!(
        touched("c5 f9 f7 c3", &machine.clone().bytes(3, &[-1; 16])),
        [(Write, 0xaaaa_0000_1000, 16)]
    );
    // addr32 maskmovdqu xmm0, xmm1
    assert_eq!(
        touched("67 66 0f f7 c1", &machine.clone().bytes(1, &mask)),
        [(Write, 0x1003, 2), (Write, 0x100f, 1)]
    );
}

#[test]
fn masked_loads_and_stores() {
    let machine = Machine::new().gpr(RDI, 0x1000).gpr(R11, 0x2000);
    let with = |mask: u64| machine.clone().mask(1, mask);
    // vmovdqu8 zmm0{k1}{z}, [rdi]
    let bytes = "62 f1 7f c9 6f 07";
    assert_eq!(touched(bytes, &with(u64::MAX)), [(Read, 0x1000, 64)]);
    assert_eq!(touched(bytes, &with(1 << 63 | 0b110)), [(Read, 0x1001, 2), (Read, 0x103f, 1)]);
    assert_eq!(touched(bytes, &with(0)), []);
    // vmovdqu32 [rdi]{k1}, ymm0
    let store = "62 f1 7e 29 7f 07";
    assert_eq!(touched(store, &with(0b1000_0001)), [(Write, 0x1000, 4), (Write, 0x101c, 4)]);
    assert_eq!(touched(store, &with(0x100)), []);
    // vmovsd [rdi]{k1}, xmm0 and vaddss xmm0{k1}, xmm1, [rdi]: the lowest bit only
    assert_eq!(touched("62 f1 ff 09 11 07", &with(1)), [(Write, 0x1000, 8)]);
    assert_eq!(touched("62 f1 ff 09 11 07", &with(!1)), []);
    assert_eq!(touched("62 f1 76 09 58 07", &with(1)), [(Read, 0x1000, 4)]);
    assert_eq!(touched("62 f1 76 09 58 07", &with(!1)), []);
    // vpcmpeqb k6{k1}, zmm3, [r11], and vpblendmd zmm0{k1}, zmm1, [rdi], whose mask selects
    assert_eq!(touched("62 d1 65 49 74 33", &with(1 << 32)), [(Read, 0x2020, 1)]);
    assert_eq!(touched("62 f2 75 49 64 07", &with(0b10)), [(Read, 0x1004, 4)]);
}

#[test]
fn a_lane_is_as_wide_as_what_its_result_needs() {
    let machine = Machine::new().gpr(RDI, 0x1000).mask(1, 0b10);
    // vpdpbusd zmm0{k1}, zmm1, [rdi]: four bytes make a lane
    assert_eq!(touched("62 f2 75 49 50 07", &machine), [(Read, 0x1004, 4)]);
    // vpmuludq ymm0{k1}, ymm1, [rdi]: eight
    assert_eq!(touched("62 f1 f5 29 f4 07", &machine), [(Read, 0x1008, 8)]);
    // vfmulcsh xmm0{k1}, xmm1, [rdi]: one lane, of two halves of a complex number
    assert_eq!(touched("62 f6 76 09 d7 07", &machine), []);
    assert_eq!(touched("62 f6 76 09 d7 07", &machine.clone().mask(1, 1)), [(Read, 0x1000, 4)]);
    // vcvtps2pd zmm0{k1}, [rdi]: from four bytes to eight
    assert_eq!(touched("62 f1 7c 49 5a 07", &machine), [(Read, 0x1004, 4)]);
    // vpmovzxbq zmm0{k1}, [rdi]: from one to eight
    assert_eq!(touched("62 f2 7d 49 32 07", &machine), [(Read, 0x1001, 1)]);
    // vpmovqb [rdi]{k1}, zmm0: from eight to one
    assert_eq!(touched("62 f2 7e 49 32 07", &machine), [(Write, 0x1001, 1)]);
    // vcvtps2ph [rdi]{k1}, zmm0, 0: from four to two
    assert_eq!(touched("62 f3 7d 49 1d 07 00", &machine), [(Write, 0x1002, 2)]);
    // vextracti32x4 [rdi]{k1}, zmm0, 1
    assert_eq!(touched("62 f3 7d 49 39 07 01", &machine), [(Write, 0x1004, 4)]);
}

#[test]
fn masked_broadcasts_read_an_element_if_any_of_its_lanes_is_on() {
    let machine = Machine::new().gpr(RDI, 0x1000);
    let with = |mask: u64| machine.clone().mask(1, mask);
    // vaddpd zmm0{k1}, zmm1, qword ptr [rdi]{1to8}
    let embedded = "62 f1 f5 59 58 07";
    assert_eq!(touched(embedded, &with(0x80)), [(Read, 0x1000, 8)]);
    assert_eq!(touched(embedded, &with(0x100)), []);
    // vcvtps2pd xmm0{k1}, dword ptr [rdi]{1to2}
    assert_eq!(touched("62 f1 7c 19 5a 07", &with(0b10)), [(Read, 0x1000, 4)]);
    assert_eq!(touched("62 f1 7c 19 5a 07", &with(0b100)), []);
    // vpbroadcastb zmm0{k1}, [rdi]
    assert_eq!(touched("62 f2 7d 49 78 07", &with(1 << 63)), [(Read, 0x1000, 1)]);
    // vbroadcastf32x4 zmm0{k1}, [rdi]: sixteen lanes from four elements
    assert_eq!(touched("62 f2 7d 49 1a 07", &with(1 << 13 | 1 << 4)), [(Read, 0x1000, 8)]);
    assert_eq!(touched("62 f2 7d 49 1a 07", &with(1 << 16)), []);
    // vbroadcastf32x2 ymm0{k1}, [rdi]: eight from two
    assert_eq!(touched("62 f2 7d 29 19 07", &with(1 << 7)), [(Read, 0x1004, 4)]);
    assert_eq!(touched("62 f2 7d 29 19 07", &with(1 << 8)), []);
}

#[test]
fn compress_and_expand_leave_no_gaps() {
    let machine = Machine::new().gpr(RDI, 0x1000);
    let with = |mask: u64| machine.clone().mask(1, mask);
    // vpcompressd [rdi]{k1}, zmm0
    assert_eq!(touched("62 f2 7d 49 8b 07", &with(0x8421)), [(Write, 0x1000, 16)]);
    assert_eq!(touched("62 f2 7d 49 8b 07", &with(0xf_0000)), []);
    // vpcompressb [rdi]{k1}, xmm0
    assert_eq!(touched("62 f2 7d 09 63 07", &with(0xffff_8001)), [(Write, 0x1000, 2)]);
    // vexpandpd zmm0{k1}{z}, [rdi]
    assert_eq!(touched("62 f2 fd c9 88 07", &with(0xe0)), [(Read, 0x1000, 24)]);
    // vpexpandw ymm0{k1}{z}, [rdi]
    assert_eq!(touched("62 f2 fd a9 62 07", &with(u64::MAX)), [(Read, 0x1000, 32)]);
}

#[test]
fn bit_strings() {
    let machine = Machine::new().gpr(RDI, 0x1000);
    let with = |offset: u64| machine.clone().gpr(RAX, offset);
    // bt dword ptr [rdi], eax: signed, in words of the operand's size, the register's upper half idle
    let bt = "0f a3 07";
    assert_eq!(touched(bt, &with(31)), [(Read, 0x1000, 4)]);
    assert_eq!(touched(bt, &with(32)), [(Read, 0x1004, 4)]);
    assert_eq!(touched(bt, &with(0xdead_0000_0021)), [(Read, 0x1004, 4)]);
    assert_eq!(touched(bt, &with(0xffff_ffff)), [(Read, 0xffc, 4)]);
    assert_eq!(touched(bt, &with(0xffff_ffdf)), [(Read, 0xff8, 4)]);
    // bt word ptr [rdi], ax
    assert_eq!(touched("66 0f a3 07", &with(0x7fff)), [(Read, 0x1ffe, 2)]);
    assert_eq!(touched("66 0f a3 07", &with(0x1_8000)), [(Read, 0, 2)]);
    // bt qword ptr [rdi], rax
    assert_eq!(touched("48 0f a3 07", &with(1 << 40)), [(Read, 0x1000 + (1 << 37), 8)]);
    assert_eq!(touched("48 0f a3 07", &with(u64::MAX)), [(Read, 0xff8, 8)]);
    // bt dword ptr [rdi+rcx*4+8], r9d
    let indexed = machine.clone().gpr(RCX, 0x10).gpr(R9, 64);
    assert_eq!(touched("44 0f a3 4c 8f 08", &indexed), [(Read, 0x1050, 4)]);
    // bt dword ptr [edi], eax
    let narrow = with(u64::MAX).gpr(RDI, 0xdead_0000_0000);
    assert_eq!(touched("67 0f a3 07", &narrow), [(Read, 0xffff_fffc, 4)]);
}

#[test]
fn bit_strings_that_change() {
    let machine = Machine::new().gpr(RDI, 0x1000).gpr(RAX, 100);
    // bts qword ptr [rdi], rax
    assert_eq!(touched("48 0f ab 07", &machine), [(Read, 0x1008, 8), (Write, 0x1008, 8)]);
    // lock btr dword ptr [rdi], eax
    assert_eq!(touched("f0 0f b3 07", &machine), [(AtomicUpdate, 0x100c, 4)]);
    // btc word ptr fs:[rdi], ax
    assert_eq!(
        touched("64 66 0f bb 07", &machine),
        [(Read, FS_BASE + 0x100c, 2), (Write, FS_BASE + 0x100c, 2)]
    );
}

#[test]
fn table_look_up() {
    let machine = Machine::new().gpr(RBX, 0xabcd_0000_1000).gpr(RAX, 0xffff_ffff_ffff_fff0);
    assert_eq!(touched("d7", &machine), [(Read, 0xabcd_0000_10f0, 1)]);
    assert_eq!(touched("64 d7", &machine), [(Read, FS_BASE + 0xabcd_0000_10f0, 1)]);
    assert_eq!(touched("67 d7", &machine), [(Read, 0x10f0, 1)]);
}

#[test]
fn cache_line_zeroed() {
    let machine = Machine::new().gpr(RAX, 0xabcd_0000_107f);
    assert_eq!(touched("0f 01 fc", &machine), [(Write, 0xabcd_0000_1040, 64)]);
    assert_eq!(touched("67 0f 01 fc", &machine), [(Write, 0x1040, 64)]);
}

#[test]
fn without_lanes_there_is_nothing_to_say() {
    let machine = Machine::new().gpr(RDI, 0x1000).mask(1, u64::MAX);
    // mov rax, [rdi]; bt dword ptr [rdi], 3; vpermd zmm0{k1}, zmm1, [rdi]; no instruction
    for bytes in ["48 8b 07", "0f ba 27 03", "62 f2 75 49 36 07", "06", "0f a3"] {
        assert_eq!(touched(bytes, &machine), [], "{bytes}");
    }
}
