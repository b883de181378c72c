//! Serving: the target stops at `main`, and for each execution that is asked for it makes a copy of
//! itself, which goes on.
//!
//! The copy is made by a `clone` of the target's own: at the entry of `main` the application is sent
//! to an instruction of ours that makes the call ([`Stub`]), so the engine sees a process fork as any
//! may. Behind it the copy is sent back to `main`, and the server waits for it to end, says how it
//! did, and waits for the next request.
//!
//! A copy is what a target started anew would be: before `main` there is one thread, and nothing is
//! decided; so policy and seed count from there. What a copy would not have, or would share with
//! others, is looked for on the way to `main` ([`unfit`]); where it is found, the server says so and
//! ends.
//!
//! What copies spend their time on is building blocks. So each tells which it had to build, through
//! memory that it shares with the server, and before the next copy the server builds them too.

mod processor;
mod streams;
mod unfit;
mod wait;

use crate::memory::apart::{SharedList, Stub};
use crate::memory::kernel;
use crate::probe::{Probe, fail};
use processor::Processors;
use raddle_decode::main_of_entry;
use raddle_dynamorio::block::Point;
use raddle_dynamorio::client::Client;
use raddle_dynamorio::process::{self, MachineState, NamedPipe, SystemCall};
use raddle_dynamorio::redirect::Context;
use raddle_wire::serve::{self, Reply, Request};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use streams::Streams;

/// Marks, among blocks that copies had to build, a function that is called back.
const CALLBACK: u64 = 1 << 63;
/// Bytes of start code that are looked at.
const ENTRY_CODE: usize = 256;

/// A target that serves.
#[derive(Debug)]
pub struct Server {
    main: u64,
    stub: Stub,
    requests: NamedPipe,
    replies: NamedPipe,
    /// Descriptors that were open when the target started.
    inherited: BTreeSet<i32>,
    /// Why copies would not be what the target is, as soon as that is known.
    unfit: OnceLock<&'static str>,
    /// The target as it comes to `main`, as it makes a copy there, and its streams.
    at_main: OnceLock<Context>,
    at_copying: OnceLock<Context>,
    streams: OnceLock<Streams>,
    /// A copy is being made.
    copying: AtomicBool,
    /// This process is a copy.
    is_copy: AtomicBool,
    /// What the copy is to do.
    request: Mutex<Option<Request>>,
    processors: Processors,
    /// Blocks that copies had to build, and how many of them the server has built since.
    blocks: SharedList,
    built: AtomicUsize,
}

impl Server {
    /// Prepares to serve; the command is told if that cannot be.
    pub fn new(directory: &str) -> Result<Server, String> {
        let open = |name: &str, writes: bool| {
            let path = CString::new(format!("{directory}/{name}")).map_err(|e| e.to_string())?;
            NamedPipe::open(&path, writes).ok_or(format!("cannot open {directory}/{name}"))
        };
        let (requests, replies) = (open(serve::REQUESTS, false)?, open(serve::REPLIES, true)?);
        let Some(main) = find_main() else {
            give_up(replies, "its main function is not found");
        };
        let (Some(stub), Some(blocks)) = (Stub::install(), SharedList::new()) else {
            give_up(replies, "there is no room for what a server needs");
        };
        Ok(Server {
            main,
            stub,
            requests,
            replies,
            inherited: unfit::descriptors(),
            unfit: OnceLock::new(),
            at_main: OnceLock::new(),
            at_copying: OnceLock::new(),
            streams: OnceLock::new(),
            copying: AtomicBool::new(false),
            is_copy: AtomicBool::new(false),
            request: Mutex::new(None),
            processors: Processors::default(),
            blocks,
            built: AtomicUsize::new(0),
        })
    }

    /// Inserts what belongs at the entry of `main` and behind the instruction that copies.
    pub fn insert(&self, point: &mut Point<'_>) {
        match point.instruction.map(|instruction| instruction.pc) {
            Some(pc) if pc == self.main => point.clean_call(on_main, pc),
            Some(pc) if pc == self.stub.end() => point.clean_call(on_copied, pc),
            _ => {}
        }
    }

    /// A block is being built.
    pub fn block(&self, tag: u64) {
        if self.is_copy.load(Ordering::Relaxed) {
            self.blocks.push(tag);
        }
    }

    /// A function has turned out to be called back: code at its entry notices.
    pub fn callback(&self, function: u64) {
        if self.is_copy.load(Ordering::Relaxed) {
            self.blocks.push(function | CALLBACK);
        }
    }

    /// Is this process on its way to `main`?
    fn is_starting(&self) -> bool {
        self.at_main.get().is_none()
    }

    /// A system call comes. True when it is our own, the one that copies.
    pub fn call_comes(&self, probe: &Probe, call: &SystemCall<'_>) -> bool {
        if self.copying.load(Ordering::Relaxed) {
            self.build_blocks(probe);
            return true;
        }
        self.processors.call_comes(call);
        if self.is_starting()
            && let Some(why) = unfit::by_call(call)
        {
            let _ = self.unfit.set(why);
        }
        false
    }

    /// A system call has returned. True when it is our own.
    pub fn call_returned(&self) -> bool {
        self.copying.load(Ordering::Relaxed)
    }

    /// This process is the copy: returns what it is to do. `None` when it is a child of the target's
    /// own.
    pub fn copied(&self) -> Option<Request> {
        if !self.copying.load(Ordering::Relaxed) || self.is_copy.swap(true, Ordering::Relaxed) {
            return None;
        }
        wait::end_with_parent();
        self.processors.stay();
        self.request.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    /// Ends a copy at once, when all is written that it has to say: taking the engine apart is of no
    /// use to a process that ends. What it gave the kernel as its status.
    pub fn end(&self, status: Option<i32>) {
        if self.is_copy.load(Ordering::Relaxed)
            && let Some(status) = status
        {
            kernel::call(libc::SYS_exit_group, [status as u64, 0, 0, 0, 0, 0]);
        }
    }

    /// Builds what copies had to. Code that is no module's may be another's in the next copy.
    fn build_blocks(&self, probe: &Probe) {
        let built = self.built.load(Ordering::Relaxed);
        let mut tags = self.blocks.since(built);
        self.built.store(built + tags.len(), Ordering::Relaxed);
        tags.retain(|tag| probe.modules.find(*tag & !CALLBACK).is_some());
        tags.retain(|tag| {
            let is_callback = tag & CALLBACK != 0;
            if is_callback {
                probe.instrumentation.learn_callback(tag & !CALLBACK);
            }
            !is_callback
        });
        if !tags.is_empty() {
            process::build_blocks(&mut tags);
        }
    }

    fn say(&self, reply: &Reply) {
        say(self.replies, reply);
    }

    fn take_request(&self) {
        let Some(line) = wait::line(self.requests.descriptor()) else { process::abort(0) };
        let request = serve::parse(&line).unwrap_or_else(|why| fail(&why));
        *self.request.lock().unwrap_or_else(|e| e.into_inner()) = Some(request);
    }

    /// Waits for a request and makes the copy. Does not return, so it must hold nothing.
    fn serve(&self) {
        self.take_request();
        self.copying.store(true, Ordering::Relaxed);
        if let Some(at_copying) = self.at_copying.get() {
            at_copying.go();
        }
        fail("the engine refuses to make a copy");
    }
}

/// The target has come to `main`, or a copy has; or the program calls it.
extern "C" fn on_main(pc: u64) {
    let probe = Probe::instance();
    let Some(server) = &probe.server else { return };
    if !server.is_starting() {
        return;
    }
    let unfit = server.unfit.get().copied();
    if let Some(why) = unfit.or_else(|| unfit::at_main(probe, &server.inherited)) {
        give_up(server.replies, why);
    }
    let _ = server.streams.set(Streams::now());
    let at_main = Context::at(pc);
    // No flags: a process of its own, whose end makes no signal that the target could notice.
    let _ = server.at_copying.set(at_main.calling(server.stub.start(), libc::SYS_clone));
    let _ = server.at_main.set(at_main);
    server.say(&Reply::Ready);
    server.serve();
}

/// Behind the call that copies, in the server and in the copy.
extern "C" fn on_copied(_: u64) {
    let Some(server) = &Probe::instance().server else { return };
    server.copying.store(false, Ordering::Relaxed);
    if server.is_copy.load(Ordering::Relaxed) {
        if let Some(at_main) = server.at_main.get() {
            at_main.go();
        }
        fail("the engine refuses to go on at main");
    }
    let child = MachineState::current(false).general[0] as i64;
    if child < 0 {
        give_up(server.replies, "the kernel makes no copy of it");
    }
    server.say(&Reply::Started(child as u32));
    let Some(status) = wait::for_end(child as i32, server.requests.descriptor()) else {
        process::abort(0)
    };
    if let Some(streams) = server.streams.get() {
        streams.restore();
    }
    server.say(&Reply::Ended(status));
    server.serve();
}

/// Says why there is no serving, and ends.
fn give_up(replies: NamedPipe, why: &str) -> ! {
    say(replies, &Reply::Cannot(why.to_owned()));
    process::abort(0)
}

fn say(replies: NamedPipe, reply: &Reply) {
    let line = serve::line(reply);
    let arguments = [replies.descriptor() as u64, line.as_ptr() as u64, line.len() as u64, 0, 0, 0];
    // Where nobody reads any more, nobody will ask either, and that ends us.
    kernel::call(libc::SYS_write, arguments);
}

fn find_main() -> Option<u64> {
    let entry = process::program_entry()?;
    let mut code = [0; ENTRY_CODE];
    let read = process::read(entry, &mut code);
    main_of_entry(&code[..read], entry)
}
