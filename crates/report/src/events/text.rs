//! Events for people: thread, what, on what, where; in columns that widen when they must.

use super::{hook_name, subject};
use crate::names::Symbols;
use crate::paint::{Paint, Tint};
use crate::world::{NO_THREAD, World};
use raddle_model::{AccessKind, Event, EventKind, Family, LockMode, ThreadId};
use std::io::{self, Write};
use std::path::PathBuf;

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
        let thread = match world.thread_name(event.thread) {
            _ if event.thread == NO_THREAD => "-".to_owned(),
            Some(name) => format!("{} {name}", event.thread),
            None => event.thread.to_string(),
        };
        let what = what(&event.kind);
        let object = self.object(&event.kind, world, symbols);
        let place = world.place(event.place, symbols).text(&self.base);

        if let Some(process) = process {
            write!(out, "[{process}] ")?;
        }
        let columns = [
            (self.thread.pad(&thread), Some(Tint::Thread)),
            (self.what.pad(&what), tint(&event.kind)),
            (self.on.pad(&object), None),
        ];
        let mut line = String::new();
        for (text, tint) in columns {
            line += &match tint {
                Some(tint) => self.paint.text(tint, text),
                None => text,
            };
            line += "  ";
        }
        line += &self.paint.text(Tint::Place, place);
        writeln!(out, "{}", line.trim_end())?;

        let indent = self.thread.width + 2;
        for caller in world.stack_names(event.stack, symbols).iter().skip(1) {
            let line = format!("{:indent$}  called from {}", "", caller.text(&self.base));
            writeln!(out, "{}", self.paint.text(Tint::Place, line))?;
        }
        Ok(())
    }

    /// What the event is about: an address by its name, a call, a path.
    fn object(&self, kind: &EventKind, world: &mut World, symbols: &mut dyn Symbols) -> String {
        match kind {
            // The block does not exist yet for those who look for it by its address.
            EventKind::Allocate { address, .. } => address.to_string(),
            EventKind::ModuleLoad { path, .. } | EventKind::ProcessExec { path } => path.clone(),
            EventKind::ModuleUnload { module } => {
                world.module(*module).map(|path| path.to_string()).unwrap_or_default()
            }
            EventKind::ThreadName { name } => name.clone(),
            EventKind::FunctionEnter { hook, arguments } => {
                let arguments: Vec<String> = arguments.iter().map(|a| format!("{a:#x}")).collect();
                format!("{}({})", hook_name(&self.hooks, *hook), arguments.join(", "))
            }
            EventKind::FunctionExit { hook, result } => match result {
                Some(result) => format!("{} = {result:#x}", hook_name(&self.hooks, *hook)),
                None => format!("{} by a jump", hook_name(&self.hooks, *hook)),
            },
            kind => match subject(kind) {
                Some(address) => world.address(address, symbols).text(address.0, &self.base),
                None => String::new(),
            },
        }
    }
}

/// A column that remembers its widest content.
#[derive(Debug)]
struct Column {
    width: usize,
}

impl Column {
    fn pad(&mut self, text: &str) -> String {
        self.width = self.width.max(text.chars().count()).min(WIDEST.max(self.width));
        format!("{text:<width$}", width = self.width)
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

/// What happened, in the words of [`EventKind::name`] with the numbers that belong to it.
fn what(kind: &EventKind) -> String {
    use EventKind::*;
    let name = kind.name().replace('-', " ");
    match kind {
        Access { size, .. } => format!("{name} {size}"),
        Range { length, .. } => format!("{name} {length}"),
        Allocate { size, .. } => format!("{name} {size}"),
        Free { size: 0, .. } => name,
        Free { size, .. } => format!("{name} {size}"),
        TransactionAccess { kind, size, .. } => {
            let side = if *kind == AccessKind::Read { "read" } else { "write" };
            format!("transaction {side} {size}")
        }

        ThreadCreate { child } => format!("{name} {child}"),
        ThreadStart { creator: None, .. } => name,
        ThreadStart { creator: Some(creator), .. } => format!("{name} by {creator}"),
        ThreadCreated { created, handle } => format!("{name} {}", thread_or(*created, *handle)),
        ThreadJoined { joined, handle } => format!("{name} {}", thread_or(*joined, *handle)),
        ThreadDetached { handle } | ThreadCancelled { handle } => format!("{name} {handle:#x}"),

        LockRequested { mode, .. } | LockAcquired { mode, .. } | LockFailed { mode, .. } => {
            name + side(*mode)
        }
        LockReleased { mode, .. } => name + mode.map_or("", side),
        ConditionSignal { all, .. } => name + if *all { " all" } else { "" },
        ConditionWaitEnd { woken, .. } => name + if *woken { "" } else { " unwoken" },
        BarrierCreated { count, .. } => format!("{name} for {count}"),
        SemaphoreCreated { value, .. } => format!("{name} at {value}"),
        OnceEnd { done, .. } => name + if *done { "" } else { " undone" },
        TaskCreate { data, .. } | TaskBegin { data, .. } | TaskEnd { data, .. } => {
            format!("{name} ({data:#x})")
        }

        FutexWait { expected, .. } => format!("{name} while {expected}"),
        FutexWaitEnd { result, .. } => format!("{name} = {result}"),
        FutexWake { count, .. } => format!("{name} {}", i64::from(*count)),
        SignalDelivered { signal } => format!("{name} {signal}"),
        Output { descriptor, length } => format!("{name} {length} to {descriptor}"),
        ProcessForked { child } => format!("{name} {child}"),
        ProcessEnd { status: Some(status) } => format!("{name} {status}"),

        ThreadName { .. }
        | ThreadExit
        | LockCreated { .. }
        | LockDestroyed { .. }
        | ConditionWaitBegin { .. }
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
        | TransactionStart
        | TransactionCommit
        | TransactionAbort
        | FunctionEnter { .. }
        | FunctionExit { .. }
        | ModuleLoad { .. }
        | ModuleUnload { .. }
        | ProcessExec { .. }
        | ProcessEnd { status: None } => name,
    }
}

fn side(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "",
        LockMode::Shared => " shared",
    }
}

fn thread_or(thread: Option<ThreadId>, handle: u64) -> String {
    thread.map_or_else(|| format!("{handle:#x}"), |thread| thread.to_string())
}
