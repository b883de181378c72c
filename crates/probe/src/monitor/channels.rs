//! What descriptors stand for: pipes, sockets, files, event counters and queues, through which one
//! thread hands over to another.
//!
//! Writing releases to the *channel* behind a descriptor, reading from it acquires, and so does being
//! told that there is something to read. A channel is found by what the kernel calls the open file,
//! so both ends of a pipe, copies of a descriptor, descriptors that were there before the program, and
//! files opened twice are one. Not found that way, and therefore followed: both ends of a socket
//! pair, and things without a name (event counters, timers), whose channel is the descriptor's
//! until it is closed. The two ends of a connection within the process are one by their addresses.
//!
//! Where more is ordered than need be: a channel has one clock for both directions and for all that
//! was ever written to it; connections to one unnamed socket's name share a channel, and so do
//! sockets without a connection; `accept` comes after every `connect` so far.

use crate::memory::sockets;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The channels met so far.
#[derive(Debug, Default)]
pub struct Channels {
    state: Mutex<State>,
    /// Grows whenever a descriptor stands for something else.
    changes: AtomicU32,
}

/// What a thread knows of them without asking: the descriptors it used last.
#[derive(Debug)]
pub struct KnownChannels {
    changes: u32,
    rows: [(i32, u32); KNOWN],
}

const KNOWN: usize = 8;
const NO_DESCRIPTOR: i32 = -1;

impl Default for KnownChannels {
    fn default() -> Self {
        KnownChannels { changes: 0, rows: [(NO_DESCRIPTOR, 0); KNOWN] }
    }
}

#[derive(Debug, Default)]
struct State {
    /// By descriptor, until it is closed.
    open: FxHashMap<i32, u32>,
    /// By what it is called.
    named: FxHashMap<String, u32>,
    /// What an epoll descriptor was told to say of another: (epoll, data) to the other.
    watched: FxHashMap<(i32, u64), i32>,
    made: u32,
}

impl State {
    fn new_channel(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    fn named(&mut self, name: String) -> u32 {
        if let Some(channel) = self.named.get(&name) {
            return *channel;
        }
        let channel = self.new_channel();
        self.named.insert(name, channel);
        channel
    }

    fn of(&mut self, descriptor: i32) -> u32 {
        if let Some(channel) = self.open.get(&descriptor) {
            return *channel;
        }
        let channel = match name_of(descriptor) {
            Some(name) => self.named(name),
            None => self.new_channel(),
        };
        self.open.insert(descriptor, channel);
        channel
    }
}

impl Channels {
    /// The channel behind a descriptor.
    pub fn of(&self, known: &mut KnownChannels, descriptor: i32) -> u32 {
        // Before it is looked up: a change meanwhile is seen the next time.
        let changes = self.changes.load(Ordering::Acquire);
        if known.changes != changes {
            *known = KnownChannels { changes, ..KnownChannels::default() };
        }
        let row = &mut known.rows[descriptor as usize % KNOWN];
        if row.0 != descriptor || descriptor == NO_DESCRIPTOR {
            *row = (descriptor, self.lock().of(descriptor));
        }
        row.1
    }

    /// A channel without a descriptor, by a name of our choosing.
    pub fn named(&self, name: &str) -> u32 {
        self.lock().named(name.to_owned())
    }

    /// Has a channel of this name been met?
    pub fn is_named(&self, name: &str) -> bool {
        self.lock().named.contains_key(name)
    }

    /// Two new descriptors are the ends of one thing.
    pub fn pair(&self, ends: [i32; 2]) {
        let mut state = self.lock();
        let channel = state.new_channel();
        for end in ends {
            state.open.insert(end, channel);
        }
        self.changed();
    }

    /// `copy` now stands for the same as `original`.
    pub fn copied(&self, original: i32, copy: i32) {
        let mut state = self.lock();
        let channel = state.of(original);
        state.open.insert(copy, channel);
        self.changed();
    }

    /// These descriptors, from the first to the last, stand for nothing any more, or for something
    /// new.
    pub fn closed(&self, first: i32, last: i32) {
        let mut state = self.lock();
        if first == last {
            state.open.remove(&first);
        } else {
            state.open.retain(|descriptor, _| !(first..=last).contains(descriptor));
        }
        self.changed();
    }

    /// `epoll` will speak of `descriptor` as `data`.
    pub fn watched(&self, epoll: i32, data: u64, descriptor: i32) {
        self.lock().watched.insert((epoll, data), descriptor);
    }

    /// Whom `epoll` means by `data`.
    pub fn watched_as(&self, epoll: i32, data: u64) -> Option<i32> {
        self.lock().watched.get(&(epoll, data)).copied()
    }

    /// In a forked child nothing of it is known to others.
    pub fn forget(&self) {
        *self.lock() = State::default();
        self.changed();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// What the kernel calls the thing behind a descriptor, if that tells it from all others.
fn name_of(descriptor: i32) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    let link = link.to_string_lossy().into_owned();
    if link.starts_with("anon_inode:") {
        return None;
    }
    if link.starts_with("socket:") {
        return Some(match sockets::ends(descriptor) {
            // Whichever end this is.
            Some([a, b]) if a <= b => format!("connection {a:?} {b:?}"),
            Some([a, b]) => format!("connection {b:?} {a:?}"),
            None => "sockets without a connection".to_owned(),
        });
    }
    Some(link)
}
