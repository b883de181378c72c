//! The target's process as the engine shows it: threads, modules, system calls, memory, machine
//! state; and leaving it.

use crate::block::CodeAddress;
use crate::{FALSE, TRUE};
use dynamorio_sys as dr;
use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU8;

/// A thread of the target, during a callback.
#[derive(Debug, Clone, Copy)]
pub struct Thread<'a> {
    context: *mut c_void,
    marker: PhantomData<&'a ()>,
}

impl Thread<'_> {
    /// # Safety
    /// `context` must be the engine's context of a live thread, valid for the lifetime.
    pub(crate) unsafe fn new(context: *mut c_void) -> Self {
        Thread { context, marker: PhantomData }
    }

    /// The kernel's id of it.
    pub fn os_id(&self) -> u32 {
        // SAFETY: a valid context.
        unsafe { dr::dr_get_thread_id(self.context) as u32 }
    }
}

/// A module of the target, during a callback.
#[derive(Debug)]
pub struct Module<'a> {
    /// Where it came from; empty when the kernel made it up (the vdso).
    pub path: &'a str,
    /// Its load address.
    pub start: u64,
    /// One past its last byte.
    pub end: u64,
}

impl Module<'_> {
    /// # Safety
    /// `data` must be valid for the lifetime.
    pub(crate) unsafe fn new(data: *const dr::module_data_t) -> Self {
        // SAFETY: per the contract; the path is null or a C string that lives as long.
        unsafe {
            let path = (*data).full_path;
            let path =
                if path.is_null() { "" } else { CStr::from_ptr(path).to_str().unwrap_or("") };
            Module { path, start: (*data).__bindgen_anon_1.start as u64, end: (*data).end as u64 }
        }
    }
}

/// An address in the engine's own code.
pub fn engine_code() -> u64 {
    dr::dr_get_main_module as *const () as u64
}

/// The path of the program itself.
pub fn program_path() -> Option<String> {
    // SAFETY: the engine hands out a copy that is ours to free; the path is null or a C string.
    unsafe {
        let data = dr::dr_get_main_module();
        if data.is_null() {
            return None;
        }
        let path = Module::new(data).path.to_owned();
        dr::dr_free_module_data(data);
        (!path.is_empty()).then_some(path)
    }
}

/// Where the program itself is entered.
pub fn program_entry() -> Option<u64> {
    // SAFETY: as in `program_path`.
    unsafe {
        let data = dr::dr_get_main_module();
        if data.is_null() {
            return None;
        }
        let entry = (*data).entry_point as u64;
        dr::dr_free_module_data(data);
        (entry != 0).then_some(entry)
    }
}

/// Has the engine build these blocks, unless it has them, and expect them as targets of calls,
/// returns and jumps. Only from a system-call callback, where the engine is not in the cache.
pub fn build_blocks(tags: &mut [u64]) {
    // SAFETY: the engine's function is made for a thread that is not yet under its control and
    // leaves it with the application's segments in place; so those are put in place before, and ours
    // after. Nothing in between uses ours. The tags are addresses of code, by the caller's promise.
    unsafe {
        let context = dr::dr_get_current_drcontext();
        let native = dr::dr_state_flags_t_DR_STATE_GO_NATIVE;
        let (list, count) = (tags.as_mut_ptr().cast::<dr::app_pc>(), tags.len());
        dr::dr_switch_to_app_state_ex(context, native);
        dr::dr_prepopulate_cache(list, count);
        dr::dr_switch_to_dr_state_ex(context, native);
    }
}

/// A system call of the current thread, before or after.
#[derive(Debug)]
pub struct SystemCall<'a> {
    context: *mut c_void,
    /// Its number.
    pub number: i32,
    finished: bool,
    marker: PhantomData<&'a ()>,
}

impl SystemCall<'_> {
    /// # Safety
    /// Only inside a system-call callback of this thread.
    pub(crate) unsafe fn new(context: *mut c_void, number: c_int) -> Self {
        SystemCall { context, number, finished: false, marker: PhantomData }
    }

    /// An argument, from 0. Only before the call.
    pub fn argument(&self, index: u32) -> u64 {
        // SAFETY: a running system-call callback.
        unsafe { dr::dr_syscall_get_param(self.context, index as c_int) as u64 }
    }

    /// Changes an argument. Only before the call.
    pub fn set_argument(&mut self, index: u32, value: u64) {
        // SAFETY: a running system-call callback; what the value means is the kernel's business.
        unsafe { dr::dr_syscall_set_param(self.context, index as c_int, value as dr::reg_t) };
    }

    /// Answers the call in the kernel's stead: it will not be made. An error is a negative number,
    /// as the kernel has it. Only before the call.
    pub fn finish(&mut self, result: i64) {
        // SAFETY: a running system-call callback.
        unsafe { dr::dr_syscall_set_result(self.context, result as dr::reg_t) };
        self.finished = true;
    }

    /// Was it answered by us?
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The kernel's answer, or ours. Only after the call.
    pub fn result(&self) -> i64 {
        // SAFETY: a running system-call callback.
        unsafe { dr::dr_syscall_get_result(self.context) as i64 }
    }

    /// Lets the target see another answer than the kernel's. Only after the call.
    pub fn change_result(&mut self, result: i64) {
        // SAFETY: a running system-call callback.
        unsafe { dr::dr_syscall_set_result(self.context, result as dr::reg_t) };
    }

    /// The registers of the thread that makes the call.
    pub fn state(&self) -> MachineState {
        MachineState::of(self.context, false)
    }
}

/// The application's registers.
#[derive(Debug, Clone)]
pub struct MachineState {
    /// In hardware order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
    pub general: [u64; 16],
    /// The instruction.
    pub pc: u64,
    /// The flags.
    pub flags: u64,
    /// 32 vector registers of 64 bytes, when asked for.
    pub vectors: Vec<[u8; 64]>,
    /// The AVX-512 mask registers, when asked for.
    pub masks: [u64; 8],
}

impl MachineState {
    /// The current thread's state, inside a clean call.
    pub fn current(vectors: bool) -> MachineState {
        // SAFETY: returns the current thread's context.
        MachineState::of(unsafe { dr::dr_get_current_drcontext() }, vectors)
    }

    pub(crate) fn of(context: *mut c_void, vectors: bool) -> MachineState {
        let mut raw = MaybeUninit::<dr::dr_mcontext_t>::uninit();
        // SAFETY: the engine asks for size and flags and fills in what the flags name, or nothing. Zero is a valid
        // value of everything; the vectors, two kilobytes, are touched only when they are asked for.
        unsafe {
            let asked = match vectors {
                true => size_of::<dr::dr_mcontext_t>(),
                false => std::mem::offset_of!(dr::dr_mcontext_t, __bindgen_anon_11),
            };
            std::ptr::write_bytes(raw.as_mut_ptr().cast::<u8>(), 0, asked);
            let raw = raw.as_mut_ptr();
            (*raw).size = size_of::<dr::dr_mcontext_t>();
            (*raw).flags = if vectors {
                dr::dr_mcontext_flags_t::DR_MC_ALL
            } else {
                dr::dr_mcontext_flags_t(
                    dr::dr_mcontext_flags_t::DR_MC_INTEGER.0
                        | dr::dr_mcontext_flags_t::DR_MC_CONTROL.0,
                )
            };
            dr::dr_get_mcontext(context, raw);
            let mut state = MachineState::from_raw(raw);
            if vectors {
                let simd = &(*raw).__bindgen_anon_11.simd;
                state.vectors = simd.iter().map(|v| std::mem::transmute_copy(v)).collect();
                for (mask, raw) in state.masks.iter_mut().zip(&(*raw).opmask) {
                    *mask = *raw;
                }
            }
            state
        }
    }

    /// # Safety
    /// Integer and control fields of `raw` must be set.
    pub(crate) unsafe fn from_raw(raw: *const dr::dr_mcontext_t) -> MachineState {
        // SAFETY: per the contract; each union has members of one type and size. No reference to the whole is
        // made, of which the rest may not be set.
        unsafe {
            MachineState {
                general: [
                    (*raw).__bindgen_anon_8.xax,
                    (*raw).__bindgen_anon_7.xcx,
                    (*raw).__bindgen_anon_6.xdx,
                    (*raw).__bindgen_anon_5.xbx,
                    (*raw).__bindgen_anon_4.xsp,
                    (*raw).__bindgen_anon_3.xbp,
                    (*raw).__bindgen_anon_2.xsi,
                    (*raw).__bindgen_anon_1.xdi,
                    (*raw).r8,
                    (*raw).r9,
                    (*raw).r10,
                    (*raw).r11,
                    (*raw).r12,
                    (*raw).r13,
                    (*raw).r14,
                    (*raw).r15,
                ],
                pc: (*raw).__bindgen_anon_10.pc as u64,
                flags: (*raw).__bindgen_anon_9.xflags,
                vectors: Vec::new(),
                masks: [0; 8],
            }
        }
    }
}

/// A stretch of memory with one protection.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// The mapped region an address lies in.
pub fn region_of(address: u64) -> Option<Region> {
    // SAFETY: a zeroed record is filled in by the engine.
    unsafe {
        let mut info: dr::dr_mem_info_t = std::mem::zeroed();
        if dr::dr_query_memory_ex(address as *const u8, &mut info) == 0 || info.prot == 0 {
            return None;
        }
        Some(Region { start: info.base_pc as u64, end: info.base_pc as u64 + info.size as u64 })
    }
}

/// Is this address ours or the engine's, and not the target's?
pub fn is_ours(address: u64) -> bool {
    let at = address as *mut u8;
    // SAFETY: both look the address up in tables of the engine's.
    unsafe { dr::dr_memory_is_dr_internal(at) != 0 || dr::dr_memory_is_in_client(at) != 0 }
}

/// The first address that is none of a program's. From here on, most are not even addresses.
const USER_END: u64 = 1 << 47;

/// Can there be anything of a program's at this address?
pub fn is_user(address: u64) -> bool {
    address < USER_END
}

/// Reads the target's memory; returns how many bytes could be read.
pub fn read(address: u64, into: &mut [u8]) -> usize {
    // The engine would survive it, after a signal: who unwinds through code without tables finds many such.
    if !is_user(address) {
        return 0;
    }
    let mut done = 0;
    // SAFETY: the engine survives faults on the source; the destination is ours.
    unsafe {
        dr::dr_safe_read(address as *const c_void, into.len(), into.as_mut_ptr().cast(), &mut done);
    }
    done
}

/// Writes the target's memory; `false` when not all of it could be written.
pub fn write(address: u64, from: &[u8]) -> bool {
    let mut done = 0;
    // SAFETY: the engine survives faults on the destination; the source is ours.
    let written = unsafe {
        let to = address as *mut c_void;
        dr::dr_safe_write(to, from.len(), from.as_ptr().cast(), &mut done)
    };
    written != 0 && done == from.len()
}

/// Runs something that may block for long, while the engine may suspend or end this thread at will:
/// it must hold no lock.
pub fn while_suspendable<R>(blocks: impl FnOnce() -> R) -> R {
    // SAFETY: the current thread's context; each mark is taken back by its counterpart.
    unsafe {
        let context = dr::dr_get_current_drcontext();
        dr::dr_mark_safe_to_suspend(context, TRUE);
        let done = blocks();
        dr::dr_mark_safe_to_suspend(context, FALSE);
        done
    }
}

/// Lets other threads run.
pub fn yield_thread() {
    // SAFETY: no argument, and callable anywhere.
    unsafe { dr::dr_thread_yield() };
}

/// Places code where the code cache can call it. The memory lives as long as the process.
pub fn install_code(code: &[u8]) -> Option<CodeAddress> {
    let size = code.len().next_multiple_of(4096);
    // SAFETY: a fresh region of the engine's, filled before it becomes executable.
    unsafe {
        let memory = dr::dr_nonheap_alloc(size, dr::DR_MEMPROT_READ | dr::DR_MEMPROT_WRITE);
        if memory.is_null() {
            return None;
        }
        std::ptr::copy_nonoverlapping(code.as_ptr(), memory.cast(), code.len());
        let executable = dr::DR_MEMPROT_READ | dr::DR_MEMPROT_EXEC;
        (dr::dr_memory_protect(memory, size, executable) != 0).then_some(CodeAddress(memory as u64))
    }
}

/// Bytes, zero at first, that inserted code can address. They live as long as the process.
pub fn reachable_bytes(count: usize) -> Option<&'static [AtomicU8]> {
    // SAFETY: a fresh region of the engine's, readable and writable, never freed; zeroed here, and any
    // byte is a valid atomic.
    unsafe {
        let memory = dr::dr_nonheap_alloc(count, dr::DR_MEMPROT_READ | dr::DR_MEMPROT_WRITE);
        if memory.is_null() {
            return None;
        }
        std::ptr::write_bytes(memory.cast::<u8>(), 0, count);
        Some(std::slice::from_raw_parts(memory.cast(), count))
    }
}

/// Has the engine build the block at `pc` anew, soon. Only from a clean call.
pub fn rebuild_later(pc: u64) {
    // SAFETY: allowed from a clean call; no completion callback.
    unsafe {
        dr::dr_delay_flush_region(pc as *mut u8, 1, 0, None);
    }
}

/// Has this thread leave the code cache at the end of the block, or trace, that has this instruction, which is then built
/// anew. Only from inserted code and what it calls, without a lock held: the engine waits for threads that build code.
pub fn leave_soon(pc: u64) {
    // SAFETY: see above. What runs is unlinked and freed only when nobody is in it.
    unsafe {
        dr::dr_unlink_flush_region(pc as *mut u8, 1);
    }
}

/// The processor's clock.
pub fn ticks() -> u64 {
    // SAFETY: reads a register, which user code may do on Linux unless it has asked the kernel not to.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Has all code built anew, and returns when no thread runs any that was built before. Only from a
/// system call event, without a lock held.
pub fn rebuild_everything() {
    // SAFETY: see above.
    unsafe {
        dr::dr_flush_region(std::ptr::null_mut(), usize::MAX as _);
    }
}

/// Has all code built anew, at the latest when the engine next meets new code. From anywhere.
pub fn rebuild_everything_later() {
    // SAFETY: the request is queued, which is allowed everywhere; no completion callback.
    unsafe {
        dr::dr_delay_flush_region(std::ptr::null_mut(), usize::MAX as _, 0, None);
    }
}

/// Ends the process at once, without the engine's or the target's exit handling.
pub fn abort(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { dr::dr_abort_with_code(code) };
    loop {
        std::hint::spin_loop();
    }
}

/// A file mapped shared, through the engine, so that its descriptor is hidden from the target.
#[derive(Debug)]
pub struct SharedFile {
    file: dr::file_t,
}

impl SharedFile {
    /// Creates the file; fails when it exists already. A forked child has it no more.
    pub fn create(path: &CStr) -> Option<SharedFile> {
        let flags = dr::DR_FILE_READ
            | dr::DR_FILE_WRITE_REQUIRE_NEW
            | dr::DR_FILE_ALLOW_LARGE
            | dr::DR_FILE_CLOSE_ON_FORK;
        // SAFETY: a valid C string.
        let file = unsafe { dr::dr_open_file(path.as_ptr(), flags) };
        (file >= 0).then_some(SharedFile { file })
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.file
    }

    /// Maps `length` bytes from `offset`, shared and writable. The mapping lives as long as the
    /// process.
    pub fn map(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let mut size = length;
        // SAFETY: the engine chooses the address; nothing is replaced.
        let at = unsafe {
            dr::dr_map_file(
                self.file,
                &mut size,
                offset,
                std::ptr::null_mut(),
                dr::DR_MEMPROT_READ | dr::DR_MEMPROT_WRITE,
                0,
            )
        };
        (!at.is_null() && size >= length).then_some(at.cast())
    }
}

/// A named pipe, opened through the engine, so that its descriptor is hidden from the target. A
/// forked child has it no more.
#[derive(Debug, Clone, Copy)]
pub struct NamedPipe {
    file: dr::file_t,
}

impl NamedPipe {
    /// Opens it for writing, or for reading.
    pub fn open(path: &CStr, writes: bool) -> Option<NamedPipe> {
        let mode = if writes { dr::DR_FILE_WRITE_ONLY } else { dr::DR_FILE_READ };
        // SAFETY: a valid C string.
        let file = unsafe { dr::dr_open_file(path.as_ptr(), mode | dr::DR_FILE_CLOSE_ON_FORK) };
        (file >= 0).then_some(NamedPipe { file })
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> i32 {
        self.file
    }
}
