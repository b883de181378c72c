//! The events the engine calls a client for, as one trait.
//!
//! Callbacks run on the engine's stack with our own thread-local storage in place: ordinary Rust
//! works in them. They must not unwind; the probe aborts on a panic.

use crate::block::{Block, Point};
use crate::process::{MachineState, Module, SystemCall, Thread};
use crate::slots::Slots;
use crate::{FALSE, TRUE};
use dynamorio_sys as dr;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// A client of the engine. All methods may be called by several threads at once.
pub trait Client: Sync + Sized + 'static {
    /// What is decided once per block and used while inserting into it.
    type Plan;

    /// The one client of this process.
    fn instance() -> &'static Self;
    /// The slots inserted code uses.
    fn slots(&self) -> Slots;

    /// A block is about to be built: look at it whole.
    fn plan(&self, block: &Block<'_>) -> Self::Plan;
    /// The same block, instruction by instruction: insert what the plan says.
    fn insert(&self, point: &mut Point<'_>, plan: &mut Self::Plan);

    /// The current thread is new.
    fn thread_start(&self, thread: Thread<'_>);
    /// The current thread is about to end. Also called, in any thread, for those alive at the end.
    fn thread_exit(&self, thread: Thread<'_>);

    /// A module is mapped and about to run for the first time.
    fn module_load(&self, module: &Module<'_>);
    /// A module was unmapped.
    fn module_unload(&self, module: &Module<'_>);

    /// Should the system call with this number be shown?
    fn wants_system_call(&self, number: i32) -> bool;
    /// A system call is about to be made, unless this finishes it. A finished one is not shown to
    /// [`Client::after_system_call`].
    fn before_system_call(&self, call: &mut SystemCall<'_>);
    /// A system call has returned.
    fn after_system_call(&self, call: &mut SystemCall<'_>);

    /// A signal has come for the current thread. `blocked` ones are shown again on delivery.
    fn signal(&self, thread: Thread<'_>, number: i32, blocked: bool, state: &MachineState);

    /// The kernel has moved the current thread elsewhere: to a signal's handler, or back from it.
    fn moved_by_kernel(&self);

    /// The program's handler of a signal is about to run; the state is that at its beginning.
    fn handler_begins(&self, state: &MachineState);

    /// This process is a fresh copy of its parent, with this thread only.
    fn forked(&self, thread: Thread<'_>);
    /// The process ends.
    fn process_exit(&self);
}

/// Registers the client for everything. Call once, from the client's main function.
///
/// `spill_registers` is how many scratch registers insertion needs at once.
pub fn register<C: Client>(spill_registers: u32) -> Result<(), &'static str> {
    // SAFETY: the engine calls these functions with the documented arguments; each shim below
    // turns them into safe types. Registration happens once, during client initialisation.
    unsafe {
        if dr::drmgr_init() == 0 {
            return Err("drmgr does not start");
        }
        let mut options: dr::drreg_options_t = std::mem::zeroed();
        options.struct_size = size_of::<dr::drreg_options_t>();
        // A register is not free for the taking because the next instruction sets it: if that faults, the
        // program's handler finds the register as it was, and some rely on it (the JVM's SafeFetch).
        options.conservative = TRUE;
        options.num_spill_slots = spill_registers;
        if dr::drreg_init(&mut options) != dr::drreg_status_t_DRREG_SUCCESS {
            return Err("drreg does not start");
        }
        let all = [
            dr::drmgr_register_bb_instrumentation_event(
                Some(on_plan::<C>),
                Some(on_insert::<C>),
                std::ptr::null_mut(),
            ),
            dr::drmgr_register_thread_init_event(Some(on_thread_start::<C>)),
            dr::drmgr_register_thread_exit_event(Some(on_thread_exit::<C>)),
            dr::drmgr_register_module_load_event(Some(on_module_load::<C>)),
            dr::drmgr_register_module_unload_event(Some(on_module_unload::<C>)),
            dr::drmgr_register_signal_event(Some(on_signal::<C>)),
            dr::drmgr_register_kernel_xfer_event(Some(on_transfer::<C>)),
        ];
        dr::dr_register_filter_syscall_event(Some(on_filter));
        // Not through drmgr: it takes a lock of all threads and copies its list of one, before every call and after it.
        dr::dr_register_pre_syscall_event(Some(on_before_system_call::<C>));
        dr::dr_register_post_syscall_event(Some(on_after_system_call::<C>));
        dr::dr_register_fork_init_event(Some(on_fork::<C>));
        dr::dr_register_exit_event(Some(on_exit::<C>));
        if all.contains(&FALSE) { Err("the engine refuses an event") } else { Ok(()) }
    }
}

/// Translations are stored: what we insert depends on what was learned by then, so the engine could
/// not make the same block again.
const EMIT: dr::dr_emit_flags_t = dr::dr_emit_flags_t::DR_EMIT_STORE_TRANSLATIONS;

/// Does the engine keep the state of AVX-512? It begins to when it sees an instruction that needs it, and
/// overlooks those that write `ymm16` to `ymm31`, if a client has blocks decoded: then our code, at the
/// end of the block, would destroy what libc's string functions have there. So it is shown one.
static WIDE_STATE: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn on_plan<C: Client>(
    context: *mut c_void,
    tag: *mut c_void,
    list: *mut dr::instrlist_t,
    _for_trace: dr::bool_,
    _translating: dr::bool_,
    user_data: *mut *mut c_void,
) -> dr::dr_emit_flags_t {
    // SAFETY: arguments of a running block callback; `user_data` is ours to set.
    unsafe {
        let block = Block::new(context, tag, list);
        let plan = Box::new(C::instance().plan(&block));
        *user_data = Box::into_raw(plan).cast();
    }
    EMIT
}

unsafe extern "C" fn on_insert<C: Client>(
    context: *mut c_void,
    _tag: *mut c_void,
    list: *mut dr::instrlist_t,
    at: *mut dr::instr_t,
    _for_trace: dr::bool_,
    _translating: dr::bool_,
    user_data: *mut c_void,
) -> dr::dr_emit_flags_t {
    // SAFETY: `user_data` is the plan made for this very block by `on_plan`; drmgr passes it to
    // one thread, instruction by instruction, and the last call frees it.
    unsafe {
        let client = C::instance();
        let mut point = Point::new(context, list, at, client.slots());
        if !WIDE_STATE.swap(true, Ordering::Relaxed) && std::is_x86_feature_detected!("avx512bw") {
            point.use_masks();
        }
        let last = point.is_last();
        client.insert(&mut point, &mut *user_data.cast::<C::Plan>());
        if last {
            drop(Box::from_raw(user_data.cast::<C::Plan>()));
        }
    }
    EMIT
}

unsafe extern "C" fn on_thread_start<C: Client>(context: *mut c_void) {
    // SAFETY: the context of the current thread.
    C::instance().thread_start(unsafe { Thread::new(context) });
}

unsafe extern "C" fn on_thread_exit<C: Client>(context: *mut c_void) {
    // SAFETY: the context of the thread that ends.
    C::instance().thread_exit(unsafe { Thread::new(context) });
}

unsafe extern "C" fn on_module_load<C: Client>(
    _context: *mut c_void,
    data: *const dr::module_data_t,
    _loaded: dr::bool_,
) {
    // SAFETY: the data is valid during the callback.
    C::instance().module_load(&unsafe { Module::new(data) });
}

unsafe extern "C" fn on_module_unload<C: Client>(
    _context: *mut c_void,
    data: *const dr::module_data_t,
) {
    // SAFETY: the data is valid during the callback.
    C::instance().module_unload(&unsafe { Module::new(data) });
}

/// Every system call leaves the code cache, whether anybody wants to know of it or not. The engine would leave most of
/// those that nobody wants in the cache, but a block with such a call is each thread's own: every thread builds it anew, and
/// when the thread ends, the engine (11.90) forgets to free the block's stored translations. Two blocks for each thread
/// that ever lived were 100 KiB for 200 threads; leaving the cache takes 0.2 us.
unsafe extern "C" fn on_filter(_context: *mut c_void, _number: c_int) -> dr::bool_ {
    TRUE
}

/// Forgets the upper halves of the vector registers, which the engine has loaded in full before the call and saved since. While
/// they are in use, some processors need 150 ns for the first instruction that changes a lower half.
fn clear_upper_halves() {
    if std::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has the instruction. In a callback the application's registers are saved, and of the
        // vector registers nothing is kept for a caller (System V ABI 3.2.1).
        unsafe { std::arch::asm!("vzeroupper", options(nomem, nostack, preserves_flags)) };
    }
}

unsafe extern "C" fn on_before_system_call<C: Client>(
    context: *mut c_void,
    number: c_int,
) -> dr::bool_ {
    if C::instance().wants_system_call(number) {
        clear_upper_halves();
        // SAFETY: a running system-call callback.
        let mut call = unsafe { SystemCall::new(context, number) };
        C::instance().before_system_call(&mut call);
        if call.is_finished() {
            return FALSE;
        }
    }
    TRUE
}

unsafe extern "C" fn on_after_system_call<C: Client>(context: *mut c_void, number: c_int) {
    if C::instance().wants_system_call(number) {
        clear_upper_halves();
        // SAFETY: a running system-call callback.
        C::instance().after_system_call(&mut unsafe { SystemCall::new(context, number) });
    }
}

unsafe extern "C" fn on_signal<C: Client>(
    context: *mut c_void,
    info: *mut dr::dr_siginfo_t,
) -> dr::dr_signal_action_t {
    // SAFETY: the information and its machine state are valid during the callback.
    unsafe {
        let state = MachineState::from_raw(&*(*info).mcontext);
        C::instance().signal(Thread::new(context), (*info).sig, (*info).blocked != 0, &state);
    }
    dr::dr_signal_action_t_DR_SIGNAL_DELIVER
}

unsafe extern "C" fn on_transfer<C: Client>(
    context: *mut c_void,
    info: *const dr::dr_kernel_xfer_info_t,
) {
    // SAFETY: the information is valid during the callback, in which the engine gives the state of the thread after
    // the transfer.
    unsafe {
        C::instance().moved_by_kernel();
        if (*info).type_ == dr::dr_kernel_xfer_type_t_DR_XFER_SIGNAL_DELIVERY {
            C::instance().handler_begins(&MachineState::of(context, false));
        }
    }
}

unsafe extern "C" fn on_fork<C: Client>(context: *mut c_void) {
    // SAFETY: the context of the one thread of the child.
    C::instance().forked(unsafe { Thread::new(context) });
}

unsafe extern "C" fn on_exit<C: Client>() {
    C::instance().process_exit();
    // SAFETY: the engine is leaving; both were initialised in `register`.
    unsafe {
        dr::drreg_exit();
        dr::drmgr_exit();
    }
}
