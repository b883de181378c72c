//! Counting hooked calls without entering Rust: what the quick path of the trampoline works on.
//!
//! When nothing but counts of synchronisation is wanted, all that a call of `pthread_mutex_lock`
//! changes is two numbers and which call is pending. A thread keeps a row for each call site it has
//! met; the assembly in [`crate::trampoline`] finds the row, counts, and notes the pending call in
//! the one *frame* here. Whatever it does not know (a new call site, a call that did not succeed, a
//! jump, a signal) is left to the handlers, which first make the frame an ordinary pending call
//! (`hooks::settle`). One frame is enough: what an opaque function calls does not count.
//!
//! A detector wants more of a call, but of many only at one end: that a thread without locks asks for one is
//! nothing to it, nor that one has returned from unlocking, nor the entry of a function whose stretches of memory are known when it
//! has returned. Such an end is left to the assembly, too. In a
//! row for the one, [`Row::return_site`] stays [`UNKNOWN`], in a row for the other [`Row::site`]; and
//! the handler at the entry of the other notes the frame.

use super::Reservation;
use raddle_model::Place;
use std::sync::atomic::AtomicU32;

/// Rows a thread has, a power of two: a program has a few dozen hot call sites. 16 KiB.
pub const ROWS: usize = 1 << ROW_BITS;
pub const ROW_BITS: u32 = 8;
/// Spreads return addresses over the rows: 2^32 divided by the golden ratio (Knuth 6.4).
pub const SPREAD: u32 = 0x9E37_79B1;

/// So many arguments of a pending call are noted.
pub const NOTED: usize = 3;

/// Not yet met.
pub const UNKNOWN: u32 = u32::MAX;

/// A call site. The trampoline's assembly knows the layout.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where its calls return to; zero in a row that is free.
    pub returns_to: u64,
    /// The site number at the function's entry.
    pub site: u32,
    /// The age of the module table for which `place` is right.
    pub age: u32,
    /// The site number at the return; [`UNKNOWN`] at first.
    pub return_site: u32,
    /// The bits of the result that a call which succeeded leaves zero.
    pub failure_bits: u32,
    /// How often the function was entered from here.
    pub entered: u64,
    /// How often it returned with success.
    pub succeeded: u64,
    /// The call.
    pub place: Place,
    /// Its hook.
    pub hook: u32,
    /// Not zero if the entry is nothing whatever the thread holds, and need not wait for [`Layout::idle`].
    pub always: u32,
}

/// So many calls the assembly notes one after the other.
const CALLS: i64 = 4096;

/// What the assembly works on. The trampoline's assembly knows the layout.
#[repr(C)]
#[derive(Debug)]
pub struct Layout {
    /// The row of the pending call; null if none.
    pub frame: *mut Row,
    /// The stack pointer when it will have returned.
    pub frame_sp: u64,
    /// What the slots `PENDING` and `OPAQUE` held before it.
    pub outer_pending: u64,
    pub outer_inside: u64,
    /// Its first arguments.
    pub arguments: [u64; NOTED],
    /// Not zero if the entries of calls may be noted by the assembly.
    pub idle: u64,
    /// The age of the module table.
    pub age: *const AtomicU32,
    /// After so many more calls one goes to Rust.
    pub calls: i64,
    pub rows: [Row; ROWS],
}

/// A pending call that the assembly noted.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Its hook.
    pub hook: u32,
    /// Where it will return to, and the stack pointer then.
    pub returns_to: u64,
    pub sp: u64,
    /// What the slot `OPAQUE` held before it, and its first arguments.
    pub outer_inside: u64,
    pub arguments: [u64; NOTED],
}

/// A thread's rows and frame.
#[derive(Debug)]
pub struct QuickTable(Reservation);

impl QuickTable {
    /// An empty table; `None` when memory is short.
    pub fn new(age: &'static AtomicU32) -> Option<QuickTable> {
        let mut table = QuickTable(Reservation::new(size_of::<Layout>())?);
        table.layout().age = age;
        Some(table)
    }

    /// Where it is, for the slot.
    pub fn start(&self) -> u64 {
        self.0.start()
    }

    fn layout(&mut self) -> &mut Layout {
        // SAFETY: the reservation is as long as the layout, aligned to a page, zero at first (a
        // valid value of every field), and used by this thread alone: by the assembly while it runs
        // the target's code, and through this exclusive borrow otherwise.
        unsafe { &mut *(self.start() as *mut Layout) }
    }

    /// Takes the pending call, if there is one.
    pub fn take_frame(&mut self) -> Option<Frame> {
        let layout: *mut Layout = self.layout();
        // SAFETY: the table's own layout; the row is null or one of it. What the assembly has just stored word by word
        // is loaded likewise: a wider load would have to wait until the stores have reached the cache.
        unsafe {
            let row = (*layout).frame;
            if row.is_null() {
                return None;
            }
            (*layout).frame = std::ptr::null_mut();
            let word = |at: *const u64| at.read_volatile();
            Some(Frame {
                hook: (*row).hook,
                returns_to: (*row).returns_to,
                sp: word(&raw const (*layout).frame_sp),
                outer_inside: word(&raw const (*layout).outer_inside),
                arguments: [
                    word(&raw const (*layout).arguments[0]),
                    word(&raw const (*layout).arguments[1]),
                    word(&raw const (*layout).arguments[2]),
                ],
            })
        }
    }

    /// The same, if it returns to this address when the stack pointer is `sp`.
    pub fn take_frame_at(&mut self, returns_to: u64, sp: u64) -> Option<Frame> {
        let layout = self.layout();
        // SAFETY: null, or a row of this table.
        let row = unsafe { layout.frame.as_ref() }?;
        if row.returns_to != returns_to || layout.frame_sp != sp {
            return None;
        }
        self.take_frame()
    }

    /// Notes a pending call as the assembly would: the one that returns to the row's address, when the
    /// stack pointer is `sp`, with its first arguments. What the slots held before it: `outer`.
    pub fn note_frame(
        &mut self,
        returns_to: u64,
        (sp, arguments): (u64, [u64; NOTED]),
        outer: (u64, u64),
    ) {
        let row: *mut Row = self.row(returns_to);
        let layout = self.layout();
        (layout.frame_sp, layout.arguments, layout.frame) = (sp, arguments, row);
        (layout.outer_pending, layout.outer_inside) = outer;
    }

    /// A call has come to Rust: the next ones need not.
    pub fn renew_calls(&mut self) {
        self.layout().calls = CALLS;
    }

    /// May the assembly note entries of calls?
    pub fn set_idle(&mut self, idle: bool) {
        self.layout().idle = u64::from(idle);
    }

    /// The same table, with this.
    pub fn idle(mut self, idle: bool) -> QuickTable {
        self.set_idle(idle);
        self
    }

    /// The row for calls that return to this address.
    pub fn row(&mut self, returns_to: u64) -> &mut Row {
        let index = (returns_to as u32).wrapping_mul(SPREAD) >> (u32::BITS - ROW_BITS);
        &mut self.layout().rows[index as usize]
    }

    /// All rows in use.
    pub fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.layout().rows.iter_mut().filter(|row| row.returns_to != 0)
    }

    /// Forgets every row.
    pub fn clear(&mut self) {
        for row in self.rows() {
            (row.returns_to, row.entered, row.succeeded) = (0, 0, 0);
        }
    }
}
