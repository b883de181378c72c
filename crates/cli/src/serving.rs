//! Servers for the executions of a plan of many, which differ in their schedules only: one for each
//! that runs at a time. Where the target cannot be served, that is said once, and whoever asked starts
//! it anew.

use crate::arguments::Verbosity;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::trial::{Hearing, Listener, Plan, TrialResult, ending, execution, request};
use raddle_execute::server::Request;
use raddle_execute::{RunDirectory, Server, Written};
use raddle_wire::options::PolicyChoice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The servers, by who uses them.
#[derive(Debug)]
pub struct Servers {
    places: Vec<Mutex<Option<Serving>>>,
    /// Nothing is served, because that was asked for or cannot be.
    anew: AtomicBool,
    verbosity: Verbosity,
    interrupt: Interrupt,
}

/// A server at work.
#[derive(Debug)]
struct Serving {
    /// What it serves, but for what each execution has of its own.
    plan: Plan,
    server: Server,
    _directory: RunDirectory,
}

impl Servers {
    /// Places for so many, which start when they are needed; with `anew`, never.
    pub fn new(count: usize, anew: bool, verbosity: Verbosity, interrupt: &Interrupt) -> Servers {
        let places = (0..count.max(1)).map(|_| Mutex::new(None)).collect();
        Servers { places, anew: AtomicBool::new(anew), verbosity, interrupt: interrupt.clone() }
    }

    /// None: one execution at a time, started anew.
    pub fn none(verbosity: Verbosity) -> Servers {
        Servers::new(1, true, verbosity, &Interrupt::default())
    }

    /// The places.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.places.len()
    }

    /// Executes a plan by the server of this place. `None` when that cannot be.
    pub fn execute(&self, place: usize, plan: &Plan) -> Option<(TrialResult, Written)> {
        if self.anew.load(Ordering::Relaxed) || !is_servable(plan) {
            return None;
        }
        let mut serving = self.lock(place);
        let done = self.try_execute(&mut serving, plan);
        done.inspect_err(|why| {
            *serving = None;
            // Ctrl-C ends servers, too.
            if !self.anew.swap(true, Ordering::Relaxed) && !self.interrupt.came() {
                self.verbosity.note(format_args!("each execution starts the program anew: {why}"));
            }
        })
        .ok()
    }

    fn try_execute(
        &self,
        serving: &mut Option<Serving>,
        plan: &Plan,
    ) -> Result<(TrialResult, Written), String> {
        let common = common(plan);
        if serving.as_ref().is_none_or(|serving| serving.plan != common) {
            // The old one ends before the new one starts.
            *serving = None;
            *serving = Some(Serving::start(common)?);
        }
        let Some(Serving { server, .. }) = serving else { return Err("it does not start".into()) };
        let schedule = &plan.schedule;
        let request = Request {
            policy: schedule.policy.clone(),
            seed: schedule.seed,
            lock_points: schedule.lock_points,
        };
        let mut listener = Listener::default();
        let served = server.execute(&request, &mut listener)?;
        let result = listener.result(plan, ending(&served.outcome), &served.outcome.control);
        Ok((result, served.written))
    }

    fn lock(&self, place: usize) -> MutexGuard<'_, Option<Serving>> {
        self.places[place].lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Serving {
    fn start(plan: Plan) -> Result<Serving, String> {
        let started = || -> Result<(Server, RunDirectory), Failure> {
            let directory = RunDirectory::temporary()?;
            let request = request(&plan, Hearing::Threads)?;
            let execution = execution(&plan, request, directory.path());
            Ok((Server::start(&execution).map_err(Failure::Other)?, directory))
        };
        let (server, _directory) = started().map_err(|failure| failure.to_string())?;
        Ok(Serving { plan, server, _directory })
    }
}

/// A replay is to show that an execution can be repeated from the program's start, and what is
/// recorded is more than a server was started for.
fn is_servable(plan: &Plan) -> bool {
    !plan.record && !matches!(plan.schedule.policy, PolicyChoice::Replay { .. })
}

/// What executions by one server have in common.
fn common(plan: &Plan) -> Plan {
    let mut common = plan.clone();
    let schedule = &mut common.schedule;
    (schedule.policy, schedule.seed, schedule.lock_points) = (PolicyChoice::Random, 0, false);
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_wire::options::{ScheduleOptions, TimeMode};

    fn plan(seed: u64) -> Plan {
        let schedule = ScheduleOptions {
            policy: PolicyChoice::Bursts,
            seed,
            time: TimeMode::Virtual,
            watch: Vec::new(),
            lock_points: seed.is_multiple_of(2),
            early_time: true,
            process: None,
            cycle: Vec::new(),
        };
        let (program, hooks) = (vec!["./bank".into()], Vec::new());
        Plan { program, cwd: "/".into(), limit_ms: 1, hooks, record: false, schedule }
    }

    #[test]
    fn a_server_serves_what_differs_in_the_schedule_only() {
        assert_eq!(common(&plan(1)), common(&plan(2)));
        let mut other = plan(1);
        other.program.push("-v".into());
        assert_ne!(common(&plan(1)), common(&other));
        let mut other = plan(1);
        other.schedule.time = TimeMode::Real;
        assert_ne!(common(&plan(1)), common(&other));
    }

    #[test]
    fn replays_and_recordings_start_anew() {
        assert!(is_servable(&plan(1)));
        assert!(!is_servable(&Plan { record: true, ..plan(1) }));
        let mut replay = plan(1);
        replay.schedule.policy = PolicyChoice::Replay { file: "H1.schedule".into(), input: None };
        assert!(!is_servable(&replay));
    }
}
