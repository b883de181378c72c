//! Callbacks of hooked functions: one-time initialisation bodies, OpenMP teams and tasks.
//!
//! A team is known by the stack address of the call that forked it. Its workers are found when they
//! enter the body: by the body's function and data.

use super::hooks::PendingKind;
use crate::probe::Probe;
use crate::stacks::Spot;
use crate::thread::{Inside, ThreadState};
use raddle_model::depends::{Dependence, Depends};
use raddle_model::{Address, EventKind, Role, ThreadId};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// What a callback's body is.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// A one-time initialisation.
    Once(Address),
    /// A share of a team's work.
    Team(Address),
    /// All that a thread was made for.
    Thread,
    /// A task.
    Task { function: u64, data: u64 },
    /// Anything else that a hooked function calls back.
    Plain,
}

/// The teams at work.
#[derive(Debug, Default)]
pub struct Teams {
    at_work: Mutex<Vec<Team>>,
    /// Functions that were handed over as tasks, and what these depend on.
    tasks: Mutex<FxHashMap<u64, Depends>>,
    /// Functions that threads were made to run.
    thread_starts: Mutex<rustc_hash::FxHashSet<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Team {
    id: Address,
    function: u64,
    data: u64,
}

impl Teams {
    /// A team is about to run `function(data)`.
    pub fn fork(&self, id: Address, function: u64, data: u64) {
        self.lock().push(Team { id, function, data });
    }

    /// A team is done.
    pub fn join(&self, id: Address) {
        self.lock().retain(|t| t.id != id);
    }

    /// A task with this function was handed over, that depends on this.
    pub fn add_task(&self, function: u64, depends: &[Dependence]) {
        let mut tasks = self.tasks.lock().unwrap_or_else(|e| e.into_inner());
        tasks.entry(function).or_default().add(depends);
    }

    /// What the tasks of this function order when they begin, or end.
    fn orders(&self, function: u64, end: bool) -> Vec<EventKind> {
        let tasks = self.tasks.lock().unwrap_or_else(|e| e.into_inner());
        let many = tasks.values().any(Depends::is_many);
        tasks.get(&function).map(|depends| depends.events(end, many)).unwrap_or_default()
    }

    /// A thread was made to run this function.
    pub fn add_thread_start(&self, function: u64) {
        self.thread_starts.lock().unwrap_or_else(|e| e.into_inner()).insert(function);
    }

    fn is_thread_start(&self, function: u64) -> bool {
        self.thread_starts.lock().unwrap_or_else(|e| e.into_inner()).contains(&function)
    }

    fn is_task(&self, function: u64) -> bool {
        self.tasks.lock().unwrap_or_else(|e| e.into_inner()).contains_key(&function)
    }

    /// The team that runs `function(data)`, or the latest that runs `function`: some runtimes pass
    /// the data on in another form.
    fn find(&self, function: u64, data: u64) -> Option<Address> {
        let teams = self.lock();
        let mut running = teams.iter().rev().filter(|t| t.function == function);
        let latest = running.clone().next()?;
        Some(running.find(|t| t.data == data).unwrap_or(latest).id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Team>> {
        self.at_work.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The team the thread works in; zero outside any.
pub fn current_team(thread: &ThreadState) -> Address {
    thread.teams.last().copied().unwrap_or(Address(0))
}

/// What `function(data)`, just entered, is the body of.
pub fn body_of(probe: &Probe, thread: &ThreadState, function: u64, data: u64) -> Option<Body> {
    let called_by = thread.pending.last().and_then(|top| match &top.what {
        PendingKind::Hook { index, object, .. } => {
            Some((&probe.monitor.hooks[*index as usize].hook.role, *object))
        }
        PendingKind::Callback(_) | PendingKind::Handler => None,
    });
    // Wherever a library waits it may run tasks, also where it waits for the team to end.
    if probe.monitor.teams.is_task(function) {
        return Some(Body::Task { function, data });
    }
    match called_by {
        Some((Role::OnceCall { .. }, object)) => return Some(Body::Once(object)),
        Some((Role::TeamFork { .. }, object)) => return Some(Body::Team(object)),
        _ => {}
    }
    // A thread's own function is its outermost; called again from within, it is like any other.
    if thread.pending.is_empty()
        && thread.id != ThreadId::MAIN
        && probe.monitor.teams.is_thread_start(function)
    {
        return Some(Body::Thread);
    }
    if let Some(team) = probe.monitor.teams.find(function, data) {
        return Some(Body::Team(team));
    }
    // Beside a thread's own function, that is a destructor of one of its variables.
    (thread.is_opaque() || thread.is_in_margin()).then_some(Body::Plain)
}

/// A body begins.
pub fn begin(probe: &Probe, thread: &mut ThreadState, body: Body, spot: Spot) {
    match body {
        Body::Once(once) => thread.emit(probe, spot, EventKind::OnceBegin { once }),
        Body::Team(team) => {
            thread.teams.push(team);
            thread.emit(probe, spot, EventKind::TeamBodyBegin { team });
        }
        Body::Task { function, data } => {
            let orders = probe.monitor.teams.orders(function, false);
            let function = Address(function);
            thread.emit(probe, spot, EventKind::TaskBegin { function, data });
            orders.into_iter().for_each(|kind| thread.emit(probe, spot, kind));
        }
        Body::Plain | Body::Thread => {}
    }
}

/// A body ended, by returning or otherwise.
pub fn end(probe: &Probe, thread: &mut ThreadState, body: Body, done: bool, spot: Spot) {
    match body {
        Body::Once(once) => thread.emit(probe, spot, EventKind::OnceEnd { once, done }),
        Body::Team(team) => {
            thread.teams.pop();
            thread.emit(probe, spot, EventKind::TeamBodyEnd { team });
        }
        Body::Task { function, data } => {
            let orders = probe.monitor.teams.orders(function, true);
            orders.into_iter().for_each(|kind| thread.emit(probe, spot, kind));
            let function = Address(function);
            thread.emit(probe, spot, EventKind::TaskEnd { function, data });
        }
        Body::Thread if done => thread.set_inside(Inside::Margin),
        Body::Plain | Body::Thread => {}
    }
}
