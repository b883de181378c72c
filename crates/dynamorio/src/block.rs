//! A basic block about to enter the code cache: what is in it, and inserting code.
//!
//! [`Point`] stands before one application instruction. Whatever it inserts keeps the application's
//! registers and flags: scratch registers and the flags come from `drreg`, which knows what is
//! live; a call ([`calls`]) goes below the red zone and to code that saves everything it uses.

mod calls;

pub use calls::{CodeAddress, RED_ZONE};

use crate::slots::{Slot, Slots};
use crate::{FALSE, TRUE};
use dynamorio_sys as dr;
use std::ffi::c_void;
use std::marker::PhantomData;

/// A block, read-only.
#[derive(Debug)]
pub struct Block<'a> {
    context: *mut c_void,
    list: *mut dr::instrlist_t,
    tag: u64,
    marker: PhantomData<&'a ()>,
}

/// An application instruction of a block.
#[derive(Debug, Clone, Copy)]
pub struct AppInstruction<'a> {
    /// Its address.
    pub pc: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// # Safety
    /// The pointers must be those of a running block callback.
    pub(crate) unsafe fn new(
        context: *mut c_void,
        tag: *mut c_void,
        list: *mut dr::instrlist_t,
    ) -> Self {
        Block { context, list, tag: tag as u64, marker: PhantomData }
    }

    /// Where the block begins.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// The application's instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = AppInstruction<'a>> + '_ {
        // SAFETY: the list is valid during the callback and is not changed while we iterate
        // (the iterator borrows `self`).
        let mut at = unsafe { dr::instrlist_first_app(self.list) };
        std::iter::from_fn(move || {
            if at.is_null() {
                return None;
            }
            // SAFETY: `at` is a live instruction of the list.
            let found = unsafe { app_instruction(self.context, at) };
            at = unsafe { dr::instr_get_next_app(at) };
            Some(found)
        })
    }
}

/// # Safety
/// `instruction` must be a live application instruction.
unsafe fn app_instruction<'a>(
    context: *mut c_void,
    instruction: *mut dr::instr_t,
) -> AppInstruction<'a> {
    // SAFETY: the engine has just decoded this very code, so its bytes are readable; they stay
    // mapped for the callback.
    unsafe {
        let pc = dr::instr_get_app_pc(instruction);
        let length = dr::instr_length(context, instruction).max(0) as usize;
        let bytes = std::slice::from_raw_parts(dr::dr_app_pc_for_decoding(pc), length);
        AppInstruction { pc: pc as u64, bytes }
    }
}

/// A general register by its hardware number: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp, 6 rsi,
/// 7 rdi, 8..15 r8..r15.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register(pub u8);

impl Register {
    /// The stack pointer.
    pub const RSP: Register = Register(4);
    /// The accumulator, where results are returned.
    pub const RAX: Register = Register(0);
    /// The frame pointer.
    pub const RBP: Register = Register(5);

    fn id(self) -> dr::reg_id_t {
        // The engine numbers 64-bit registers in hardware order.
        dr::DR_REG_RAX as dr::reg_id_t + dr::reg_id_t::from(self.0)
    }

    fn id16(self) -> dr::reg_id_t {
        dr::DR_REG_AX as dr::reg_id_t + dr::reg_id_t::from(self.0)
    }

    fn id32(self) -> dr::reg_id_t {
        dr::DR_REG_EAX as dr::reg_id_t + dr::reg_id_t::from(self.0)
    }
}

/// The segments a program can address through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentRegister {
    /// The target's thread-local storage.
    Fs,
    /// Rarely used by programs.
    Gs,
}

/// An address computed from registers.
#[derive(Debug, Clone, Copy)]
pub struct AddressForm {
    /// Added, if any.
    pub segment: Option<SegmentRegister>,
    /// Added, if any.
    pub base: Option<Register>,
    /// Added times `scale`, if any.
    pub index: Option<Register>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added.
    pub displacement: i64,
    /// The sum is cut to 32 bits.
    pub narrow: bool,
}

/// A register that inserted code may use freely until it is released.
#[derive(Debug)]
pub struct Scratch {
    register: dr::reg_id_t,
}

/// A place inside inserted code to jump to.
#[derive(Debug)]
pub struct Label {
    instruction: *mut dr::instr_t,
}

/// Just before an application instruction.
#[derive(Debug)]
pub struct Point<'a> {
    context: *mut c_void,
    list: *mut dr::instrlist_t,
    at: *mut dr::instr_t,
    slots: Slots,
    /// The instruction we stand before, when it is the application's.
    pub instruction: Option<AppInstruction<'a>>,
}

impl Point<'_> {
    /// # Safety
    /// The pointers must be those of a running insertion callback.
    pub(crate) unsafe fn new(
        context: *mut c_void,
        list: *mut dr::instrlist_t,
        at: *mut dr::instr_t,
        slots: Slots,
    ) -> Self {
        // SAFETY: per the contract.
        let instruction =
            unsafe { (dr::instr_is_app(at) != 0).then(|| app_instruction(context, at)) };
        Point { context, list, at, slots, instruction }
    }

    /// Is this the block's last instruction?
    pub fn is_last(&self) -> bool {
        // SAFETY: pointers of the running callback.
        unsafe { dr::drmgr_is_last_instr(self.context, self.at) != 0 }
    }

    /// Is the instruction a branch of any sort: jump, call, return?
    pub fn is_branch(&self) -> bool {
        // SAFETY: a live instruction of the running callback.
        unsafe { dr::instr_is_cti(self.at) != 0 }
    }

    fn before(&mut self, instruction: *mut dr::instr_t) {
        // SAFETY: the list takes over a fresh instruction.
        unsafe { dr::instrlist_meta_preinsert(self.list, self.at, instruction) }
    }

    /// Makes the flags ours until [`Self::release_flags`].
    pub fn reserve_flags(&mut self) {
        // SAFETY: `at` is the current instruction of the insertion phase.
        let status = unsafe { dr::drreg_reserve_aflags(self.context, self.list, self.at) };
        assert_eq!(status, dr::drreg_status_t_DRREG_SUCCESS, "reserving flags");
    }

    /// Gives the flags back.
    pub fn release_flags(&mut self) {
        // SAFETY: as above.
        let status = unsafe { dr::drreg_unreserve_aflags(self.context, self.list, self.at) };
        assert_eq!(status, dr::drreg_status_t_DRREG_SUCCESS, "releasing flags");
    }

    /// Takes a register, not one of `avoid`.
    pub fn reserve(&mut self, avoid: &[Register]) -> Scratch {
        let mut register: dr::reg_id_t = 0;
        // SAFETY: the vector is initialised, used and deleted here; `at` is current.
        let status = unsafe {
            let mut allowed: dr::drvector_t = std::mem::zeroed();
            dr::drreg_init_and_fill_vector(&mut allowed, TRUE);
            for a in avoid {
                dr::drreg_set_vector_entry(&mut allowed, a.id(), FALSE);
            }
            let status = dr::drreg_reserve_register(
                self.context,
                self.list,
                self.at,
                &mut allowed,
                &mut register,
            );
            dr::drvector_delete(&mut allowed);
            status
        };
        assert_eq!(status, dr::drreg_status_t_DRREG_SUCCESS, "reserving a register");
        Scratch { register }
    }

    /// Inserts an instruction of the application's that needs the state of AVX-512 and changes nothing:
    /// `kmovq k0, k0`.
    pub(crate) fn use_masks(&mut self) {
        // SAFETY: `at` is current; the list takes over the instruction. The processor has it (AVX512BW).
        unsafe {
            let mask = reg(dr::DR_REG_K0 as dr::reg_id_t);
            let new = dr::instr_create_1dst_1src(self.context, dr::OP_kmovq as i32, mask, mask);
            dr::instr_set_translation(new, dr::instr_get_app_pc(self.at));
            dr::instrlist_preinsert(self.list, self.at, new);
        }
    }

    /// Gives a register back.
    pub fn release(&mut self, scratch: Scratch) {
        // SAFETY: the register was reserved at this point.
        let status = unsafe {
            dr::drreg_unreserve_register(self.context, self.list, self.at, scratch.register)
        };
        assert_eq!(status, dr::drreg_status_t_DRREG_SUCCESS, "releasing a register");
    }

    /// Puts every register back to the application's value, so that called code can look at them.
    /// Nothing may be reserved.
    pub fn restore_all(&mut self) {
        // SAFETY: `at` is current.
        let status = unsafe { dr::drreg_restore_all(self.context, self.list, self.at) };
        assert_eq!(status, dr::drreg_status_t_DRREG_SUCCESS, "restoring registers");
    }

    /// `scratch = address`, from the application's register values.
    pub fn load_address(&mut self, scratch: &Scratch, form: &AddressForm) {
        let memory = self.memory_operand(form);
        if let Some(memory) = memory {
            // SAFETY: `at` is current; a null swap pointer asks for restoring in place.
            unsafe {
                dr::drreg_restore_app_values(
                    self.context,
                    self.list,
                    self.at,
                    memory,
                    std::ptr::null_mut(),
                );
            }
            let register = if form.narrow {
                scratch.register - dr::DR_REG_RAX as dr::reg_id_t + dr::DR_REG_EAX as dr::reg_id_t
            } else {
                scratch.register
            };
            self.create_1_1(dr::OP_lea, reg(register), memory);
        } else {
            self.load_number(scratch, form.displacement as u64);
        }
        if let Some(segment) = form.segment {
            let mut avoid = vec![];
            avoid.extend(form.base);
            avoid.extend(form.index);
            let base = self.reserve(&avoid);
            let which = match segment {
                SegmentRegister::Fs => dr::DR_SEG_FS,
                SegmentRegister::Gs => dr::DR_SEG_GS,
            };
            // SAFETY: inserts code before `at` that loads the application's segment base.
            unsafe {
                dr::dr_insert_get_seg_base(
                    self.context,
                    self.list,
                    self.at,
                    which as dr::reg_id_t,
                    base.register,
                );
            }
            let sum = base_disp(scratch.register, base.register, 1, 0, dr::OPSZ_0);
            self.create_1_1(dr::OP_lea, reg(scratch.register), sum);
            self.release(base);
        }
    }

    /// The memory operand of a form, unless it is a bare or a far displacement.
    fn memory_operand(&self, form: &AddressForm) -> Option<dr::opnd_t> {
        let id = |r: Register| if form.narrow { r.id32() } else { r.id() };
        let displacement = i32::try_from(form.displacement).ok()?;
        if form.base.is_none() && form.index.is_none() {
            return None;
        }
        let scale = if form.index.is_some() { i32::from(form.scale) } else { 0 };
        Some(base_disp(
            form.base.map_or(0, id),
            form.index.map_or(0, id),
            scale,
            displacement,
            dr::OPSZ_0,
        ))
    }

    /// `scratch = number`.
    pub fn load_number(&mut self, scratch: &Scratch, number: u64) {
        let number = immediate(number as i64, dr::OPSZ_8);
        self.create_1_1(dr::OP_mov_imm, reg(scratch.register), number);
    }

    /// `scratch = slot`.
    pub fn load_slot(&mut self, scratch: &Scratch, slot: Slot) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_1(dr::OP_mov_ld, reg(scratch.register), slot);
    }

    /// `slot = scratch`.
    pub fn store_slot(&mut self, slot: Slot, scratch: &Scratch) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_1(dr::OP_mov_st, slot, reg(scratch.register));
    }

    /// `slot = register`, the application's value, which must be in place.
    pub fn store_slot_register(&mut self, slot: Slot, register: Register) {
        // SAFETY: `at` is current.
        unsafe {
            dr::drreg_restore_app_values(
                self.context,
                self.list,
                self.at,
                reg(register.id()),
                std::ptr::null_mut(),
            );
        }
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_1(dr::OP_mov_st, slot, reg(register.id()));
    }

    /// `slot = number`, which must be below 2^31. The whole slot is written: a wider read of a
    /// narrower write would stall.
    pub fn store_slot_number(&mut self, slot: Slot, number: u32) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_1(dr::OP_mov_st, slot, immediate(i64::from(number), dr::OPSZ_4));
    }

    /// `scratch = address`, once more at a point where [`Self::load_address`] has been: no register
    /// is taken or put back, so this may stand in code that is jumped over. Not for forms with a
    /// segment.
    pub fn load_address_again(&mut self, scratch: &Scratch, form: &AddressForm) {
        match self.memory_operand(form) {
            Some(memory) => {
                let narrow = dr::DR_REG_EAX as dr::reg_id_t - dr::DR_REG_RAX as dr::reg_id_t;
                let register = scratch.register + if form.narrow { narrow } else { 0 };
                self.create_1_1(dr::OP_lea, reg(register), memory);
            }
            None => self.load_number(scratch, form.displacement as u64),
        }
    }

    /// `scratch ^= slot`. The flags must be ours.
    pub fn xor_slot(&mut self, scratch: &Scratch, slot: Slot) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_2(dr::OP_xor, reg(scratch.register), slot, reg(scratch.register));
    }

    /// `scratch &= number`, which is sign-extended. The flags must be ours.
    pub fn and_number(&mut self, scratch: &Scratch, number: i8) {
        let number = immediate(i64::from(number), dr::OPSZ_1);
        self.create_1_2(dr::OP_and, reg(scratch.register), number, reg(scratch.register));
    }

    /// `scratch >>= bits`. The flags must be ours.
    pub fn shift_right(&mut self, scratch: &Scratch, bits: u8) {
        let bits = immediate(i64::from(bits), dr::OPSZ_1);
        self.create_1_2(dr::OP_shr, reg(scratch.register), bits, reg(scratch.register));
    }

    /// `scratch += slot`. The flags must be ours.
    pub fn add_slot(&mut self, scratch: &Scratch, slot: Slot) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_1_2(dr::OP_add, reg(scratch.register), slot, reg(scratch.register));
    }

    /// `scratch = ` the byte of memory at `scratch`, which must be there.
    pub fn load_byte(&mut self, scratch: &Scratch) {
        let memory = base_disp(scratch.register, 0, 0, 0, dr::OPSZ_1);
        let value = self.sized(scratch, false);
        self.create_1_1(dr::OP_movzx, value, memory);
    }

    /// Jumps to `label` if the lower half of `scratch` is this number. The flags must be ours.
    pub fn skip_if_is(&mut self, scratch: &Scratch, number: u8, label: &Label) {
        let value = self.sized(scratch, false);
        self.create_0_2(dr::OP_cmp, value, immediate(i64::from(number), dr::OPSZ_4));
        self.jump(dr::OP_jz, label);
    }

    /// Jumps to `label` when the four bytes of memory at `scratch` equal the slot's lower half. Leaves the
    /// memory in `scratch`. The flags must be ours. A fault of the load counts as the application's.
    pub fn skip_if_memory_is_slot(&mut self, scratch: &Scratch, slot: Slot, label: &Label) {
        let size = dr::OPSZ_4;
        let value = self.sized(scratch, false);
        let memory = base_disp(scratch.register, 0, 0, 0, size);
        self.create_faulting_1_1(dr::OP_mov_ld, value, memory);
        let slot = self.slot(slot, size);
        self.create_0_2(dr::OP_cmp, value, slot);
        self.jump(dr::OP_jz, label);
    }

    /// `to = scratch ^ from`, their lower halves; `scratch` has it, too. The flags must be ours.
    pub fn differ_from_slot(&mut self, scratch: &Scratch, from: Slot, to: Slot) {
        let from = self.slot(from, dr::OPSZ_4);
        let value = self.sized(scratch, false);
        self.create_1_2(dr::OP_xor, value, from, value);
        let to = self.slot(to, dr::OPSZ_4);
        self.create_1_1(dr::OP_mov_st, to, value);
    }

    /// Jumps to `label` if none of these bits of the slot's lower half is set. The flags must be ours.
    pub fn skip_unless_slot_has(&mut self, slot: Slot, bits: i32, label: &Label) {
        let slot = self.slot(slot, dr::OPSZ_4);
        self.create_0_2(dr::OP_test, slot, immediate(i64::from(bits), dr::OPSZ_4));
        self.jump(dr::OP_jz, label);
    }

    /// Jumps to `label` if one of these bits of `scratch` is set. The flags must be ours.
    pub fn skip_if_has(&mut self, scratch: &Scratch, bits: i32, label: &Label) {
        let value = self.sized(scratch, false);
        self.create_0_2(dr::OP_test, value, immediate(i64::from(bits), dr::OPSZ_4));
        self.jump(dr::OP_jnz, label);
    }

    /// Jumps to `label` if a bit of the slot's lower half is set: the one with the number in `scratch`, which
    /// is less than 32. The flags must be ours.
    pub fn skip_if_slot_has_bit(&mut self, slot: Slot, scratch: &Scratch, label: &Label) {
        let slot = self.slot(slot, dr::OPSZ_4);
        let number = self.sized(scratch, false);
        self.create_0_2(dr::OP_bt, slot, number);
        self.jump(dr::OP_jb, label);
    }

    /// Jumps to `label` unless the four bytes at `base + offset` equal the lower half of `value`. The
    /// flags must be ours. A fault of the load counts as the application's.
    pub fn skip_unless_memory_is(
        &mut self,
        base: &Scratch,
        offset: i32,
        value: &Scratch,
        label: &Label,
    ) {
        self.compare_memory(base, offset, value);
        self.jump(dr::OP_jnz, label);
    }

    /// The same, and jumps if they do.
    pub fn skip_if_memory_is(
        &mut self,
        base: &Scratch,
        offset: i32,
        value: &Scratch,
        label: &Label,
    ) {
        self.compare_memory(base, offset, value);
        self.jump(dr::OP_jz, label);
    }

    fn compare_memory(&mut self, base: &Scratch, offset: i32, value: &Scratch) {
        let memory = base_disp(base.register, 0, 0, offset, dr::OPSZ_4);
        let value = self.sized(value, false);
        // SAFETY: valid operands; the list takes over the instruction.
        let compare = unsafe {
            let opcode = dr::OP_cmp as i32;
            dr::instr_create_0dst_2src(self.context, opcode, memory, value)
        };
        self.before_faulting(compare);
    }

    /// Jumps to `label` unless the address in `at` is one of the lowest or highest 2^`bits` of the
    /// user's address space. `other` is used; the flags must be ours.
    pub fn skip_outside_windows(
        &mut self,
        at: &Scratch,
        other: &Scratch,
        bits: u32,
        label: &Label,
    ) {
        /// Of the 64 bits of an address, those that a program's do not have.
        const UNUSED: u32 = 17;
        let other = reg(other.register);
        // SAFETY: valid operands; the list takes over the instructions.
        let copy = unsafe {
            dr::instr_create_1dst_1src(self.context, dr::OP_mov_ld as i32, other, reg(at.register))
        };
        self.before(copy);
        // The upper bits alone, sign-extended: 0 in the low window, -1 in the high one.
        self.create_1_2(dr::OP_shl, other, immediate(i64::from(UNUSED), dr::OPSZ_1), other);
        self.create_1_2(dr::OP_sar, other, immediate(i64::from(UNUSED + bits), dr::OPSZ_1), other);
        self.create_1_2(dr::OP_add, other, immediate(1, dr::OPSZ_1), other);
        self.create_0_2(dr::OP_cmp, other, immediate(1, dr::OPSZ_1));
        self.jump(dr::OP_jnbe, label);
    }

    /// Jumps to `label`.
    pub fn skip(&mut self, label: &Label) {
        self.jump(dr::OP_jmp, label);
    }

    fn sized(&self, scratch: &Scratch, wide: bool) -> dr::opnd_t {
        let narrow = dr::DR_REG_EAX as dr::reg_id_t - dr::DR_REG_RAX as dr::reg_id_t;
        reg(scratch.register + if wide { 0 } else { narrow })
    }

    fn create_1_2(&mut self, opcode: u32, to: dr::opnd_t, first: dr::opnd_t, second: dr::opnd_t) {
        // SAFETY: valid operands; the list takes over the instruction.
        let new =
            unsafe { dr::instr_create_1dst_2src(self.context, opcode as i32, to, first, second) };
        self.before(new);
    }

    fn create_faulting_1_1(&mut self, opcode: u32, to: dr::opnd_t, from: dr::opnd_t) {
        // SAFETY: as above.
        let new = unsafe { dr::instr_create_1dst_1src(self.context, opcode as i32, to, from) };
        self.before_faulting(new);
    }

    /// Inserts an instruction whose fault is the application's at this point.
    fn before_faulting(&mut self, instruction: *mut dr::instr_t) {
        if let Some(app) = &self.instruction {
            // SAFETY: a fresh instruction; the address is the one it is inserted for.
            unsafe { dr::instr_set_translation(instruction, app.pc as *mut u8) };
        }
        self.before(instruction);
    }

    /// `memory[base + offset] += 1`, eight bytes. The flags must be ours.
    pub fn increment(&mut self, base: &Scratch, offset: i32) {
        let memory = base_disp(base.register, 0, 0, offset, dr::OPSZ_8);
        self.create_1_1(dr::OP_inc, memory, memory);
    }

    /// `slot -= 1`, and jumps to `label` unless that made it negative. The flags must be ours.
    pub fn count_down(&mut self, slot: Slot, label: &Label) {
        let slot = self.slot(slot, dr::OPSZ_8);
        // SAFETY: valid operands; the list takes over the instruction.
        let less = unsafe {
            let one = immediate(1, dr::OPSZ_1);
            dr::instr_create_1dst_2src(self.context, dr::OP_sub as i32, slot, one, slot)
        };
        self.before(less);
        self.jump(dr::OP_jns, label);
    }

    /// A label to be placed later.
    pub fn new_label(&mut self) -> Label {
        // SAFETY: a fresh instruction, taken over by the list in `place`.
        Label {
            instruction: unsafe { dr::instr_create_0dst_0src(self.context, dr::OP_LABEL as i32) },
        }
    }

    /// Jumps that reach `label` arrive here.
    pub fn place(&mut self, label: Label) {
        self.before(label.instruction);
    }

    /// Jumps to `label` when the stack pointer is below the slot's value. The flags must be ours.
    pub fn skip_if_stack_below(&mut self, slot: Slot, label: &Label) {
        let slot = self.slot(slot, dr::OPSZ_8);
        self.create_0_2(dr::OP_cmp, reg(Register::RSP.id()), slot);
        self.jump(dr::OP_jb, label);
    }

    /// Jumps to `label` when the slot's low half is not zero. The flags must be ours.
    pub fn skip_if_nonzero(&mut self, slot: Slot, label: &Label) {
        self.compare_zero(slot);
        self.jump(dr::OP_jnz, label);
    }

    /// Jumps to `label` when the slot's low half is zero. The flags must be ours.
    pub fn skip_if_zero(&mut self, slot: Slot, label: &Label) {
        self.compare_zero(slot);
        self.jump(dr::OP_jz, label);
    }

    fn compare_zero(&mut self, slot: Slot) {
        let slot = self.slot(slot, dr::OPSZ_4);
        self.create_0_2(dr::OP_cmp, slot, immediate(0, dr::OPSZ_1));
    }

    fn jump(&mut self, opcode: u32, label: &Label) {
        // SAFETY: label and context are live; the list takes over the jump.
        let jump = unsafe {
            let target = dr::opnd_create_instr(label.instruction);
            dr::instr_create_0dst_1src(self.context, opcode as i32, target)
        };
        self.before(jump);
    }

    fn slot(&self, slot: Slot, size: u32) -> dr::opnd_t {
        // SAFETY: builds an operand; no memory is touched.
        unsafe {
            let offset = self.slots.offset_of(slot) as i32;
            dr::opnd_create_far_base_disp(
                self.slots.segment,
                0,
                0,
                0,
                offset,
                size as dr::opnd_size_t,
            )
        }
    }

    fn create_1_1(&mut self, opcode: u32, to: dr::opnd_t, from: dr::opnd_t) {
        // SAFETY: valid operands; the list takes over the instruction.
        let new = unsafe { dr::instr_create_1dst_1src(self.context, opcode as i32, to, from) };
        self.before(new);
    }

    fn create_0_2(&mut self, opcode: u32, first: dr::opnd_t, second: dr::opnd_t) {
        // SAFETY: as above.
        let new = unsafe { dr::instr_create_0dst_2src(self.context, opcode as i32, first, second) };
        self.before(new);
    }
}

fn reg(register: dr::reg_id_t) -> dr::opnd_t {
    // SAFETY: builds an operand.
    unsafe { dr::opnd_create_reg(register) }
}

fn immediate(value: i64, size: u32) -> dr::opnd_t {
    // SAFETY: builds an operand.
    unsafe { dr::opnd_create_immed_int(value, size as dr::opnd_size_t) }
}

fn base_disp(
    base: dr::reg_id_t,
    index: dr::reg_id_t,
    scale: i32,
    disp: i32,
    size: u32,
) -> dr::opnd_t {
    // SAFETY: builds an operand.
    unsafe { dr::opnd_create_base_disp(base, index, scale, disp, size as dr::opnd_size_t) }
}
