//! Events for people: thread, what, on what, where; in columns that widen when they must.

use super::{hook_name, ignored, subject};
use crate::names::Symbols;
use crate::paint::{Paint, Tint};
use crate::world::{NO_THREAD, World};
use raddle_model::{AccessKind, Event, EventKind, Family, LockMode, SyncObject, ThreadId};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Columns never get wider than this by themselves: one long name must not push every later line
/// off the screen.
const WIDEST: usize = 36;

/// Writes events as text.
#[derive(Debug)]
pub struct TextLines {
    paint: Paint,
    base: PathBuf,
    hooks: Vec<String>,
    thread: Column,
    what: Column,
    on: Column,
    /// The line being made, kept for its memory: millions of events are ordinary.
    line: String,
    /// The column being made, likewise.
    cell: String,
}

impl TextLines {
    /// Source files below `base` are shown relative to it; `hooks` are the names of the hook table.
    pub fn new(paint: Paint, base: PathBuf, hooks: Vec<String>) -> Self {
        TextLines {
            paint,
            base,
            hooks,
            thread: Column { width: 3 },
            what: Column { width: 20 },
            on: Column { width: 20 },
            line: String::new(),
            cell: String::new(),
        }
    }

    /// Writes one event, and below it its call stack if it has one. `process` is shown where
    /// there are several.
    pub fn write(
        &mut self,
        out: &mut dyn Write,
        process: Option<u32>,
        event: &Event,
        world: &mut World,
        symbols: &mut dyn Symbols,
    ) -> io::Result<()> {
        let TextLines { paint, base, hooks, thread, what, on, line, cell } = self;
        line.clear();
        if let Some(process) = process {
            let _ = write!(line, "[{process}] ");
        }
        put_thread(cell, event.thread, world);
        thread.put(line, cell, *paint, Some(Tint::Thread));
        put_what(cell, &event.kind);
        what.put(line, cell, *paint, tint(&event.kind));
        put_object(cell, &event.kind, hooks, base, world, symbols);
        on.put(line, cell, *paint, None);
        line.push_str(&paint.text(Tint::Place, world.place_text(event.place, base, symbols)));
        line.truncate(line.trim_end().len());
        line.push('\n');
        out.write_all(line.as_bytes())?;

        let indent = self.thread.width + 2;
        for caller in world.stack_names(event.stack, symbols).iter().skip(1) {
            let line = format!("{:indent$}  called from {}", "", caller.text(&self.base));
            writeln!(out, "{}", self.paint.text(Tint::Place, line))?;
        }
        Ok(())
    }
}

/// What happened, as [`TextLines`] says it.
pub(crate) fn what(kind: &EventKind) -> String {
    let mut cell = String::new();
    put_what(&mut cell, kind);
    cell
}

/// What it happened to, as [`TextLines`] says it; hooks stay without a name.
pub(crate) fn object(
    kind: &EventKind,
    base: &Path,
    world: &mut World,
    symbols: &mut dyn Symbols,
) -> String {
    let mut cell = String::new();
    put_object(&mut cell, kind, &[], base, world, symbols);
    cell
}

/// A column that remembers its widest content.
#[derive(Debug)]
struct Column {
    width: usize,
}

impl Column {
    /// Appends the cell to the line, filled up to the column's width, and empties it.
    fn put(&mut self, line: &mut String, cell: &mut String, paint: Paint, tint: Option<Tint>) {
        let length = cell.chars().count();
        self.width = self.width.max(length).min(WIDEST.max(self.width));
        match tint {
            Some(tint) if paint == Paint::Colour => line.push_str(&paint.text(tint, &cell)),
            _ => line.push_str(cell),
        }
        let gap = self.width.saturating_sub(length) + 2;
        line.extend(std::iter::repeat_n(' ', gap));
        cell.clear();
    }
}

fn tint(kind: &EventKind) -> Option<Tint> {
    match kind {
        EventKind::Access { kind, .. } | EventKind::Range { kind, .. } if kind.writes() => {
            Some(Tint::Write)
        }
        _ if kind.family() == Family::Sync => Some(Tint::Sync),
        _ => None,
    }
}

fn put_thread(cell: &mut String, thread: ThreadId, world: &World) {
    let _ = match world.thread_name(thread) {
        _ if thread == NO_THREAD => write!(cell, "-"),
        Some(name) => write!(cell, "{thread} {name}"),
        None => write!(cell, "{thread}"),
    };
}

/// What the event is about: an address by its name, a call, a path.
fn put_object(
    cell: &mut String,
    kind: &EventKind,
    hooks: &[String],
    base: &Path,
    world: &mut World,
    symbols: &mut dyn Symbols,
) {
    let _ = match kind {
        // The block does not exist yet for those who look for it by its address.
        EventKind::Allocate { address, .. } => write!(cell, "{address}"),
        EventKind::ModuleLoad { path, .. } | EventKind::ProcessExec { path } => {
            write!(cell, "{path}")
        }
        EventKind::ModuleUnload { module } => match world.module(*module) {
            Some(path) => write!(cell, "{path}"),
            None => Ok(()),
        },
        EventKind::ThreadName { name } => write!(cell, "{name}"),
        EventKind::FunctionEnter { hook, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(|a| format!("{a:#x}")).collect();
            write!(cell, "{}({})", hook_name(hooks, *hook), arguments.join(", "))
        }
        EventKind::FunctionExit { hook, result: Some(result) } => {
            write!(cell, "{} = {result:#x}", hook_name(hooks, *hook))
        }
        EventKind::FunctionExit { hook, result: None } => {
            write!(cell, "{} by a jump", hook_name(hooks, *hook))
        }
        kind => match subject(kind) {
            Some(address) => {
                write!(cell, "{}", world.address(address, symbols).text(address.0, base))
            }
            None => Ok(()),
        },
    };
}

/// Through what threads hand over, where it is not an address (which has a column of its own).
fn put_sync_object(cell: &mut String, object: SyncObject) -> std::fmt::Result {
    match object {
        SyncObject::Address(_) => Ok(()),
        SyncObject::Queue(_) => write!(cell, " queue"),
        SyncObject::Channel(number) => write!(cell, " channel {number}"),
        SyncObject::Signal(number) => write!(cell, " signal {number}"),
        SyncObject::ProcessEnd => write!(cell, " process end"),
    }
}

/// What happened, in the words of [`EventKind::name`] with the numbers that belong to it.
fn put_what(cell: &mut String, kind: &EventKind) {
    use EventKind::*;
    if let TransactionAccess { kind, size, .. } = kind {
        let side = if *kind == AccessKind::Read { "read" } else { "write" };
        let _ = write!(cell, "transaction {side} {size}");
        return;
    }
    cell.extend(kind.name().chars().map(|c| if c == '-' { ' ' } else { c }));
    // Writing to a string cannot fail.
    let _ = match kind {
        Access { size, .. } => write!(cell, " {size}"),
        Range { length, .. } => write!(cell, " {length}"),
        Allocate { size, .. } => write!(cell, " {size}"),
        Free { size: 0, .. } => Ok(()),
        Free { size, .. } => write!(cell, " {size}"),

        ThreadCreate { child } => write!(cell, " {child}"),
        ThreadStart { creator: None, .. } => Ok(()),
        ThreadStart { creator: Some(creator), .. } => write!(cell, " by {creator}"),
        ThreadCreated { created: Some(thread), .. } | ThreadJoined { joined: Some(thread), .. } => {
            write!(cell, " {thread}")
        }
        ThreadCreated { handle, .. }
        | ThreadJoined { handle, .. }
        | ThreadDetached { handle }
        | ThreadCancelled { handle } => write!(cell, " {handle:#x}"),

        LockRequested { mode, .. }
        | LockAcquired { mode, .. }
        | LockFailed { mode, .. }
        | LockReleased { mode: Some(mode), .. } => match mode {
            LockMode::Exclusive => Ok(()),
            LockMode::Shared => write!(cell, " shared"),
        },
        ConditionSignal { all: true, .. } => write!(cell, " all"),
        ConditionWaitEnd { woken: false, .. } => write!(cell, " unwoken"),
        BarrierCreated { count, .. } => write!(cell, " for {count}"),
        SemaphoreCreated { value, .. } => write!(cell, " at {value}"),
        OnceEnd { done: false, .. } => write!(cell, " undone"),
        TaskCreate { data, .. } | TaskBegin { data, .. } | TaskEnd { data, .. } => {
            write!(cell, " ({data:#x})")
        }

        Release { object } | Acquire { object } => put_sync_object(cell, *object),
        AtomicUpdated { size, .. } | MemoryRenewed { size, .. } | BenignRace { size, .. } => {
            write!(cell, " {size}")
        }
        IgnoreBegin { what } | IgnoreEnd { what } => write!(cell, " {}", ignored(*what)),
        DetectionSwitched { on } => write!(cell, " {}", if *on { "on" } else { "off" }),

        FutexWait { expected, .. } => write!(cell, " while {expected}"),
        FutexWaitEnd { result, .. } => write!(cell, " = {result}"),
        FutexWake { count, .. } => write!(cell, " {count}"),
        SignalDelivered { signal } => write!(cell, " {signal}"),
        Output { descriptor, length } => write!(cell, " {length} to {descriptor}"),
        ProcessForked { child } => write!(cell, " {child}"),
        ProcessEnd { status: Some(status) } => write!(cell, " {status}"),

        ThreadName { .. }
        | ThreadExit
        | LockCreated { .. }
        | LockDestroyed { .. }
        | LockReleased { mode: None, .. }
        | ConditionSignal { all: false, .. }
        | ConditionWaitBegin { .. }
        | ConditionWaitEnd { woken: true, .. }
        | BarrierEnter { .. }
        | BarrierLeave { .. }
        | SemaphorePost { .. }
        | SemaphoreAcquired { .. }
        | OnceBegin { .. }
        | OnceEnd { done: true, .. }
        | OncePassed { .. }
        | TeamFork { .. }
        | TeamBodyBegin { .. }
        | TeamBodyEnd { .. }
        | TeamJoin { .. }
        | TaskWaited
        | TransactionStart
        | TransactionCommit
        | TransactionAbort
        | TransactionAccess { .. }
        | ConditionLoopLeft { .. }
        | LockHandsOver { .. }
        | FunctionEnter { .. }
        | FunctionExit { .. }
        | ModuleLoad { .. }
        | ModuleUnload { .. }
        | ProcessExec { .. }
        | ProcessEnd { status: None } => Ok(()),
    };
}
