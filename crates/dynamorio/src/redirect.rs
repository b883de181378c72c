//! Sending the application elsewhere: to a place and registers of our choosing, and back to where it
//! was.

use dynamorio_sys as dr;

/// Everything the application has in its registers at some moment.
pub struct Context(Box<dr::dr_mcontext_t>);

// SAFETY: plain numbers.
unsafe impl Send for Context {}
// SAFETY: as above; nothing changes them through a shared reference.
unsafe impl Sync for Context {}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

impl Context {
    /// The current thread's, in the clean call we are in, as if it were about to run the instruction
    /// at `pc`.
    pub fn at(pc: u64) -> Context {
        // SAFETY: a zeroed state with size and flags set is what the engine asks for.
        unsafe {
            let mut raw: Box<dr::dr_mcontext_t> = Box::new(std::mem::zeroed());
            raw.size = size_of::<dr::dr_mcontext_t>();
            raw.flags = dr::dr_mcontext_flags_t::DR_MC_ALL;
            dr::dr_get_mcontext(dr::dr_get_current_drcontext(), &mut *raw);
            raw.__bindgen_anon_10.pc = pc as *mut u8;
            Context(raw)
        }
    }

    /// The same, about to make a system call with this number and zeroes for arguments by the
    /// instruction at `pc`.
    pub fn calling(&self, pc: u64, number: i64) -> Context {
        let mut raw = self.0.clone();
        raw.__bindgen_anon_10.pc = pc as *mut u8;
        raw.__bindgen_anon_8.xax = number as dr::reg_t;
        raw.__bindgen_anon_1.xdi = 0;
        raw.__bindgen_anon_2.xsi = 0;
        raw.__bindgen_anon_6.xdx = 0;
        (raw.r10, raw.r8, raw.r9) = (0, 0, 0);
        Context(raw)
    }

    /// The same with this in rax.
    pub fn with_accumulator(&self, value: u64) -> Context {
        let mut raw = self.0.clone();
        raw.__bindgen_anon_8.xax = value as dr::reg_t;
        Context(raw)
    }

    /// The application goes on from here; returns only when the engine refuses. Only from a clean
    /// call, and holding nothing: what is on the stack is left as it is.
    pub fn go(&self) {
        let mut raw = *self.0;
        // SAFETY: a whole state, as `at` has made it; the engine copies it.
        unsafe { dr::dr_redirect_execution(&mut raw) };
    }
}
