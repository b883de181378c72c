//! Calls out of a block: of hand-written code, and of functions with the whole state saved.

use super::{Point, Register, base_disp, immediate, reg};
use crate::FALSE;
use crate::slots::Slot;
use dynamorio_sys as dr;
use std::ffi::c_void;
use std::sync::atomic::AtomicU8;

/// Bytes below the stack pointer that belong to a leaf function (System V ABI 3.2.2).
pub const RED_ZONE: i32 = 128;

/// Executable code the code cache can reach.
#[derive(Debug, Clone, Copy)]
pub struct CodeAddress(pub(crate) u64);

impl CodeAddress {
    /// As a number.
    pub fn address(self) -> u64 {
        self.0
    }

    /// Code at an offset from this.
    pub fn offset(self, by: usize) -> CodeAddress {
        CodeAddress(self.0 + by as u64)
    }
}

impl Point<'_> {
    /// Calls hand-written code that keeps every register but the stack pointer it returns on.
    pub fn call(&mut self, code: CodeAddress) {
        for instruction in self.call_sequence(code) {
            self.before(instruction);
        }
    }

    /// Calls likewise, after the application instruction; `slot` is set to `number` first.
    pub fn call_after(&mut self, slot: Slot, number: u32, code: CodeAddress) {
        let slot = self.slot(slot, dr::OPSZ_8);
        // SAFETY: fresh instructions, taken over by the list.
        let set = unsafe {
            let number = immediate(i64::from(number), dr::OPSZ_4);
            dr::instr_create_1dst_1src(self.context, dr::OP_mov_st as i32, slot, number)
        };
        let call = self.call_sequence(code);
        for instruction in call.into_iter().rev().chain([set]) {
            // SAFETY: each is placed right after `at`, so the last placed comes first.
            unsafe { dr::instrlist_meta_postinsert(self.list, self.at, instruction) }
        }
    }

    /// `register = slot`, as many bytes of it, after the application instruction.
    pub fn overwrite_after(&mut self, register: Register, size: u8, slot: Slot) {
        let (register, size) = match size {
            2 => (register.id16(), dr::OPSZ_2),
            4 => (register.id32(), dr::OPSZ_4),
            _ => (register.id(), dr::OPSZ_8),
        };
        let slot = self.slot(slot, size);
        // SAFETY: a fresh instruction, taken over by the list.
        unsafe {
            let load =
                dr::instr_create_1dst_1src(self.context, dr::OP_mov_ld as i32, reg(register), slot);
            dr::instrlist_meta_postinsert(self.list, self.at, load);
        }
    }

    fn call_sequence(&self, code: CodeAddress) -> [*mut dr::instr_t; 3] {
        let rsp = Register::RSP.id();
        // SAFETY: creating instructions from valid operands.
        unsafe {
            let skip = |by| {
                let to = base_disp(rsp, 0, 0, by, dr::OPSZ_0);
                dr::instr_create_1dst_1src(self.context, dr::OP_lea as i32, reg(rsp), to)
            };
            let call = dr::instr_create_2dst_2src(
                self.context,
                dr::OP_call as i32,
                reg(rsp),
                base_disp(rsp, 0, 0, -8, dr::OPSZ_8),
                dr::opnd_create_pc(code.0 as *mut u8),
                reg(rsp),
            );
            [skip(-RED_ZONE), call, skip(RED_ZONE)]
        }
    }

    /// Calls a function with the whole machine state saved and the engine's own thread state in
    /// place: slow, for what is rare.
    pub fn clean_call(&mut self, callee: extern "C" fn(u64), argument: u64) {
        // SAFETY: the callee takes one integer; the engine saves and restores everything.
        unsafe {
            dr::dr_insert_clean_call(
                self.context,
                self.list,
                self.at,
                callee as *mut c_void,
                FALSE,
                1,
                immediate(argument as i64, dr::OPSZ_8),
            );
        }
    }

    /// The same inside code that is jumped over, for a callee that looks at the application's
    /// registers: borrowed ones are put back for the call.
    pub fn clean_call_exact(&mut self, callee: extern "C" fn(u64), argument: u64) {
        let flags = dr::dr_cleancall_save_t_DR_CLEANCALL_READS_APP_CONTEXT
            | dr::dr_cleancall_save_t_DR_CLEANCALL_MULTIPATH;
        // SAFETY: as above.
        unsafe {
            dr::dr_insert_clean_call_ex(
                self.context,
                self.list,
                self.at,
                callee as *mut c_void,
                flags,
                1,
                immediate(argument as i64, dr::OPSZ_8),
            );
        }
    }

    /// [`Self::clean_call_exact`], when a slot is zero.
    pub fn clean_call_unless(&mut self, slot: Slot, callee: extern "C" fn(u64), argument: u64) {
        self.reserve_flags();
        let done = self.new_label();
        self.skip_if_nonzero(slot, &done);
        self.clean_call_exact(callee, argument);
        self.place(done);
        self.release_flags();
    }

    /// The same when it is not zero.
    pub fn clean_call_if(&mut self, slot: Slot, callee: extern "C" fn(u64), argument: u64) {
        self.reserve_flags();
        let done = self.new_label();
        self.skip_if_zero(slot, &done);
        self.clean_call_exact(callee, argument);
        self.place(done);
        self.release_flags();
    }

    /// Calls hand-written code, as [`Self::call`] does, when a byte is not zero; `slot` is set to `number`
    /// first. All registers and flags are the application's then. The byte must be of
    /// [`crate::process::reachable_bytes`].
    pub fn call_if(&mut self, byte: &'static AtomicU8, slot: Slot, number: u32, code: CodeAddress) {
        self.reserve_flags();
        let (done, restored, respilled) = (self.new_label(), self.new_label(), self.new_label());
        // SAFETY: builds an operand; inserted code reads the byte.
        let byte = unsafe {
            dr::opnd_create_rel_addr(byte.as_ptr().cast(), dr::OPSZ_1 as dr::opnd_size_t)
        };
        self.create_0_2(dr::OP_cmp, byte, immediate(0, dr::OPSZ_1));
        self.jump(dr::OP_jz, &done);
        self.before(restored.instruction);
        self.store_slot_number(slot, number);
        self.call(code);
        self.before(respilled.instruction);
        // SAFETY: both labels stand in the list, before `at`; the state of reservations is not changed,
        // as it must not be in code that is jumped over.
        let status = unsafe {
            dr::drreg_statelessly_restore_all(
                self.context,
                self.list,
                restored.instruction,
                respilled.instruction,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        let expected =
            [dr::drreg_status_t_DRREG_SUCCESS, dr::drreg_status_t_DRREG_ERROR_NO_APP_VALUE];
        assert!(expected.contains(&status), "restoring registers for a call");
        self.place(done);
        self.release_flags();
    }
}
