//! Signals, before the engine hears of them.
//!
//! The kernel calls the engine for every signal, and the engine tells its clients when it delivers one, not when it comes, and not who
//! has sent it. So of those that may come at any time the kernel calls us first. They are counted ([`come`]). Under a policy, what the process sends itself goes on to the engine at once, as if
//! we were not there; what another process has sent, or the kernel on its behalf when it ended, is kept here until the
//! scheduler sends it on at a moment of its choice. Of each number one is kept, as the kernel does.

use super::kernel::{self, SignalAction};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words of a `siginfo` that say anything.
const WORDS: usize = 6;
/// Those that the kernel keeps one of; of the others it keeps all, and they are not ours.
pub const LAST: u32 = 31;
/// Nobody may pretend to be the kernel to another thread: what we send on has its code changed by so much meanwhile.
const DISGUISE: i32 = -1_000_000;

/// What is told with a signal: number and error, code, then by the code: who sent it, its status, …
pub type About = [u64; WORDS];

/// What is done with a signal from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// It is the engine's.
    Through,
    /// It is kept.
    Held,
    /// It is the engine's, and kept to be told of.
    Noted,
    /// It has come before: this is a replay.
    Dropped,
}

/// How many have come.
static COME: AtomicU32 = AtomicU32::new(0);
static MODE: AtomicU32 = AtomicU32::new(Mode::Through as u32);
/// Children that share our memory have signals of their own.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// What the kernel would call: the same for all that the engine catches.
static ENGINE: AtomicU64 = AtomicU64::new(0);
static SLOTS: [Slot; LAST as usize + 1] = [const { Slot::new() }; LAST as usize + 1];

const EMPTY: u32 = 0;
const FILLING: u32 = 1;
const HELD: u32 = 2;
const NOTED: u32 = 3;

struct Slot {
    state: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl Slot {
    const fn new() -> Slot {
        Slot { state: AtomicU32::new(EMPTY), words: [const { AtomicU64::new(0) }; WORDS] }
    }
}

/// This process is the one whose signals these are; what was kept for another is gone.
pub fn begin(mode: Mode) {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    SLOTS.iter().for_each(|slot| slot.state.store(EMPTY, Ordering::Relaxed));
    set(mode);
}

pub fn set(mode: Mode) {
    MODE.store(mode as u32, Ordering::SeqCst);
}

/// How many signals have come, for whichever thread; it wraps.
pub fn come() -> u32 {
    COME.load(Ordering::Relaxed)
}

/// The engine's action, with us before it; as it is if the engine does not catch the signal.
pub fn before(engine: SignalAction) -> SignalAction {
    if [libc::SIG_DFL, libc::SIG_IGN].contains(&(engine.handler as usize)) {
        return engine;
    }
    ENGINE.store(engine.handler, Ordering::Relaxed);
    engine.with_handler(raddle_signal_comes as *const () as u64)
}

/// What has come, of the signals in `wanted`, the lowest number first, and whether the engine has it already.
pub fn take(wanted: u64) -> Option<(u32, About, bool)> {
    let is_wanted = |signal: &u32| wanted & SignalAction::bit(*signal) != 0;
    (1..=LAST).filter(is_wanted).find_map(|signal| {
        let slot = &SLOTS[signal as usize];
        let state = slot.state.load(Ordering::Acquire);
        (state == HELD || state == NOTED).then(|| {
            let about = slot.words.each_ref().map(|word| word.load(Ordering::Relaxed));
            slot.state.store(EMPTY, Ordering::Release);
            (signal, about, state == NOTED)
        })
    })
}

/// Has one of these come? Also if the thread that the kernel has chosen for it has not run since.
pub fn has_come(wanted: u64) -> bool {
    let is_held = |signal: u32| SLOTS[signal as usize].state.load(Ordering::Acquire) != EMPTY;
    let held = (1..=LAST).filter(|signal| is_held(*signal)).map(SignalAction::bit);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    held.fold(pending, |all, bit| all | bit) & wanted != 0
}

/// Sends a signal on to a thread of this process.
pub fn send(thread: u32, mut about: About) {
    let signal = about[0] as u32;
    about[1] = u64::from((about[1] as i32).wrapping_add(DISGUISE) as u32);
    let mut all = [0u64; 16];
    all[..WORDS].copy_from_slice(&about);
    let process = u64::from(std::process::id());
    let arguments = [process, thread.into(), signal.into(), all.as_ptr() as u64, 0, 0];
    kernel::call(libc::SYS_rt_tgsigqueueinfo, arguments);
}

unsafe extern "C" {
    /// As the kernel calls a handler.
    fn raddle_signal_comes(signal: i32, about: *mut u64, context: u64);
}

// The engine finds its frame by the stack pointer: it is called by a jump.
core::arch::global_asm!(
    ".globl raddle_signal_comes",
    ".hidden raddle_signal_comes",
    ".type raddle_signal_comes, @function",
    "raddle_signal_comes:",
    "push rdi",
    "push rsi",
    "push rdx",
    "call {is_kept}",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "test eax, eax",
    "jne 2f",
    "jmp qword ptr [rip + {engine}]",
    "2: ret",
    is_kept = sym is_kept,
    engine = sym ENGINE,
);

/// In the kernel's call of a handler, wherever the thread was: touches nothing but what is here.
extern "C" fn is_kept(signal: i32, about: *mut u64) -> u32 {
    // SAFETY: the kernel's own description of the signal, on the stack of its handler: 128 bytes, of which nobody
    // else knows yet.
    let about = unsafe { &mut *about.cast::<About>() };
    COME.fetch_add(1, Ordering::Relaxed);
    if signal as u32 > LAST {
        return 0;
    }
    let code = about[1] as i32;
    if code < DISGUISE / 2 {
        about[1] = u64::from(code.wrapping_sub(DISGUISE) as u32);
        return 0;
    }
    let mode = MODE.load(Ordering::SeqCst);
    let process = PROCESS.load(Ordering::Relaxed);
    let is_from_outside = match code {
        libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL => about[2] as u32 != process,
        _ => signal == libc::SIGCHLD && (libc::CLD_EXITED..=libc::CLD_CONTINUED).contains(&code),
    };
    let is_ours = || kernel::call(libc::SYS_getpid, [0; 6]) == i64::from(process);
    if mode == Mode::Through as u32 || !is_from_outside || !is_ours() {
        return 0;
    }
    if mode == Mode::Dropped as u32 {
        return 1;
    }
    let (is_held, Some(slot)) = (mode == Mode::Held as u32, SLOTS.get(signal as usize)) else {
        return 0;
    };
    let claimed =
        slot.state.compare_exchange(EMPTY, FILLING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if claimed {
        slot.words.iter().zip(about).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
        slot.state.store(if is_held { HELD } else { NOTED }, Ordering::Release);
    }
    u32::from(is_held)
}
