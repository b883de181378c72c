//! Events for programs: one JSON object a line, with the keys of `docs/events.md`.

use super::{hook_name, ignored, subject};
use crate::hex::Hex;
use crate::names::{AddressName, PlaceName, StackFrame, Symbols};
use crate::world::World;
use raddle_model::{AccessKind, Event, EventKind, Family, LockMode, SyncObject};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::rc::Rc;

/// Writes events as JSON lines.
#[derive(Debug)]
pub struct JsonLines {
    hooks: Vec<String>,
}

impl JsonLines {
    /// `hooks` are the names of the hook table.
    pub fn new(hooks: Vec<String>) -> Self {
        JsonLines { hooks }
    }

    /// Writes one event.
    pub fn write(
        &self,
        out: &mut dyn Write,
        process: u32,
        event: &Event,
        world: &mut World,
        symbols: &mut dyn Symbols,
    ) -> io::Result<()> {
        let object = match &event.kind {
            EventKind::Allocate { .. } | EventKind::ModuleLoad { .. } => None,
            kind => subject(kind).map(|address| world.address(address, symbols)),
        };
        let line = Line {
            process,
            event,
            hooks: &self.hooks,
            place: world.place_json(event.place, symbols)?,
            object,
            stack: world.stack_names(event.stack, symbols),
            thread_name: world.thread_name(event.thread),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    }
}

struct Line<'a> {
    process: u32,
    event: &'a Event,
    hooks: &'a [String],
    place: Rc<RawValue>,
    object: Option<AddressName>,
    stack: Vec<Rc<PlaceName>>,
    thread_name: Option<&'a str>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("order", &self.event.order)?;
        map.serialize_entry("process", &self.process)?;
        map.serialize_entry("thread", &self.event.thread)?;
        if let Some(name) = self.thread_name {
            map.serialize_entry("thread_name", name)?;
        }
        map.serialize_entry("event", self.event.kind.name())?;
        map.serialize_entry("family", family(self.event.kind.family()))?;
        if let Some(address) = subject(&self.event.kind) {
            map.serialize_entry("address", &Hex(address.0))?;
        }
        self.particulars(&mut map)?;
        if let Some(object) = &self.object {
            map.serialize_entry("object", object)?;
        }
        map.serialize_entry("place", &*self.place)?;
        if !self.stack.is_empty() {
            let frames: Vec<StackFrame> =
                self.stack.iter().flat_map(|p| p.stack_frames()).collect();
            map.serialize_entry("stack", &frames)?;
        }
        map.end()
    }
}

impl Line<'_> {
    /// The keys that belong to one kind of event.
    fn particulars<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        use EventKind::*;
        match &self.event.kind {
            Access { size, .. } => map.serialize_entry("size", size),
            Range { length, .. } => map.serialize_entry("size", length),
            Allocate { size, .. } => map.serialize_entry("size", size),
            Free { size: 0, .. } => Ok(()),
            Free { size, .. } => map.serialize_entry("size", size),
            TransactionAccess { kind, size, .. } => {
                let access = if *kind == AccessKind::Read { "read" } else { "write" };
                map.serialize_entry("access", access)?;
                map.serialize_entry("size", size)
            }

            ThreadCreate { child } => map.serialize_entry("child", child),
            ThreadStart { creator, os_id } => {
                map.serialize_entry("creator", creator)?;
                map.serialize_entry("os_id", os_id)
            }
            ThreadName { name } => map.serialize_entry("name", name),
            ThreadCreated { created, handle } => {
                map.serialize_entry("created", created)?;
                map.serialize_entry("handle", &Hex(*handle))
            }
            ThreadJoined { joined, handle } => {
                map.serialize_entry("joined", joined)?;
                map.serialize_entry("handle", &Hex(*handle))
            }
            ThreadDetached { handle } | ThreadCancelled { handle } => {
                map.serialize_entry("handle", &Hex(*handle))
            }

            LockRequested { mode, .. } | LockAcquired { mode, .. } | LockFailed { mode, .. } => {
                map.serialize_entry("mode", side(*mode))
            }
            LockReleased { mode: Some(mode), .. } => map.serialize_entry("mode", side(*mode)),
            ConditionSignal { all, .. } => map.serialize_entry("all", all),
            ConditionWaitBegin { lock, .. } => map.serialize_entry("lock", &Hex(lock.0)),
            ConditionWaitEnd { lock, woken, .. } => {
                map.serialize_entry("lock", &Hex(lock.0))?;
                map.serialize_entry("woken", woken)
            }
            BarrierCreated { count, .. } => map.serialize_entry("count", count),
            SemaphoreCreated { value, .. } => map.serialize_entry("value", value),
            OnceEnd { done, .. } => map.serialize_entry("done", done),
            TaskCreate { data, .. } | TaskBegin { data, .. } | TaskEnd { data, .. } => {
                map.serialize_entry("data", &Hex(*data))
            }

            FunctionEnter { hook, arguments } => {
                map.serialize_entry("function", hook_name(self.hooks, *hook))?;
                let arguments: Vec<Hex> = arguments.iter().map(|a| Hex(*a)).collect();
                map.serialize_entry("arguments", &arguments)
            }
            FunctionExit { hook, result } => {
                map.serialize_entry("function", hook_name(self.hooks, *hook))?;
                map.serialize_entry("result", &result.map(Hex))
            }

            ModuleLoad { module, path, end, .. } => {
                map.serialize_entry("module", module)?;
                map.serialize_entry("path", path)?;
                map.serialize_entry("end", &Hex(end.0))
            }
            ModuleUnload { module } => map.serialize_entry("module", module),
            Release { object } | Acquire { object } => match object {
                SyncObject::Address(_) => Ok(()),
                SyncObject::Queue(_) => map.serialize_entry("queue", &true),
                SyncObject::Channel(number) => map.serialize_entry("channel", number),
                SyncObject::Signal(number) => map.serialize_entry("signal", number),
                SyncObject::ProcessEnd => map.serialize_entry("process_end", &true),
            },
            AtomicUpdated { size, .. } | MemoryRenewed { size, .. } | BenignRace { size, .. } => {
                map.serialize_entry("size", size)
            }
            IgnoreBegin { what } | IgnoreEnd { what } => {
                map.serialize_entry("what", ignored(*what))
            }
            DetectionSwitched { on } => map.serialize_entry("on", on),

            FutexWait { expected, .. } => map.serialize_entry("expected", expected),
            FutexWaitEnd { result, .. } => map.serialize_entry("result", result),
            FutexWake { count, .. } => map.serialize_entry("count", count),
            SignalDelivered { signal } => map.serialize_entry("signal", signal),
            Output { descriptor, length } => {
                map.serialize_entry("descriptor", descriptor)?;
                map.serialize_entry("size", length)
            }
            ProcessForked { child } => map.serialize_entry("child", child),
            ProcessExec { path } => map.serialize_entry("path", path),
            ProcessEnd { status } => map.serialize_entry("status", status),

            ThreadExit
            | LockCreated { .. }
            | LockDestroyed { .. }
            | LockReleased { mode: None, .. }
            | BarrierEnter { .. }
            | BarrierLeave { .. }
            | SemaphorePost { .. }
            | SemaphoreAcquired { .. }
            | OnceBegin { .. }
            | OncePassed { .. }
            | TeamFork { .. }
            | TeamBodyBegin { .. }
            | TeamBodyEnd { .. }
            | TeamJoin { .. }
            | TaskWaited
            | ConditionLoopLeft { .. }
            | LockHandsOver { .. }
            | TransactionStart
            | TransactionCommit
            | TransactionAbort => Ok(()),
        }
    }
}

fn side(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "exclusive",
        LockMode::Shared => "shared",
    }
}

fn family(family: Family) -> &'static str {
    match family {
        Family::Memory => "memory",
        Family::Sync => "sync",
        Family::Thread => "thread",
        Family::Function => "function",
        Family::Output => "output",
        Family::Process => "process",
    }
}
