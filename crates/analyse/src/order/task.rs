//! Teams and tasks (OpenMP): work handed to other threads and waited for.
//!
//! A team's fork comes before each member's share, and each share before the join. A task comes
//! after its creation and before its creator's wait, before the leaving of the barrier it ran in
//! and before the join of its team.
//!
//! A task is known by its function and data. A library may copy the data and give the function the
//! copy; then the task that begins matches none that was created, and from then on every task of
//! that function comes after all creations of it so far: that can hide a race, not invent one. Tasks
//! that one thread runs one after another are ordered by that thread, though another execution
//! might spread them: such races are seen only when they were spread.

use super::Clocks;
use super::thread::Threads;
use raddle_model::{Address, ThreadId};
use std::collections::{HashMap, VecDeque};

#[derive(Debug, Default)]
struct Team {
    forked: Clocks,
    ended: Clocks,
}

/// Tasks created and not begun.
#[derive(Debug)]
enum Created {
    /// Each with its data, its creator, and what came before.
    Each(VecDeque<(u64, ThreadId, Clocks)>),
    /// All together: the library copies the data.
    Together(Clocks),
}

/// All teams and tasks.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    teams: HashMap<Address, Team>,
    /// The teams a thread has worked for and that are not joined, innermost last.
    member: HashMap<ThreadId, Vec<Address>>,
    created: HashMap<Address, Created>,
    /// Creators of the tasks a thread is running, innermost last, where known.
    running: HashMap<ThreadId, Vec<Option<ThreadId>>>,
    /// What the ended tasks of a creator did.
    ended: HashMap<ThreadId, Clocks>,
    /// What the ended tasks of unknown creators did.
    ended_orphans: Clocks,
}

impl Tasks {
    pub(super) fn team_fork(&mut self, threads: &mut Threads, thread: ThreadId, team: Address) {
        threads.release(thread, &mut self.teams.entry(team).or_default().forked);
    }

    pub(super) fn body_begin(&mut self, threads: &mut Threads, thread: ThreadId, team: Address) {
        let Some(state) = self.teams.get(&team) else { return };
        threads.acquire(thread, Some(&state.forked));
        let member = self.member.entry(thread).or_default();
        if !member.contains(&team) {
            member.push(team);
        }
    }

    pub(super) fn body_end(&mut self, threads: &mut Threads, thread: ThreadId, team: Address) {
        if let Some(state) = self.teams.get_mut(&team) {
            threads.release(thread, &mut state.ended);
        }
    }

    pub(super) fn team_join(&mut self, threads: &mut Threads, thread: ThreadId, team: Address) {
        threads.acquire(thread, self.teams.remove(&team).as_ref().map(|t| &t.ended));
        self.member.retain(|_, teams| {
            teams.retain(|t| *t != team);
            !teams.is_empty()
        });
    }

    pub(super) fn create(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        function: Address,
        data: u64,
    ) {
        let now = threads.publish(thread);
        match self.created.entry(function).or_insert_with(|| Created::Each(VecDeque::new())) {
            Created::Each(tasks) => tasks.push_back((data, thread, now)),
            Created::Together(clocks) => clocks.join(&now),
        }
    }

    pub(super) fn begin(
        &mut self,
        threads: &mut Threads,
        thread: ThreadId,
        function: Address,
        data: u64,
    ) {
        let mut creator = None;
        if let Some(created) = self.created.get_mut(&function) {
            if let Created::Each(tasks) = created {
                let at = tasks.iter().position(|(d, ..)| *d == data);
                if let Some((_, by, clocks)) = at.and_then(|at| tasks.remove(at)) {
                    threads.acquire(thread, Some(&clocks));
                    creator = Some(by);
                } else {
                    let mut all = Clocks::default();
                    for (.., clocks) in tasks.iter() {
                        all.join(clocks);
                    }
                    *created = Created::Together(all);
                }
            }
            if let Created::Together(clocks) = created {
                threads.acquire(thread, Some(clocks));
            }
        }
        self.running.entry(thread).or_default().push(creator);
    }

    pub(super) fn end(&mut self, threads: &mut Threads, thread: ThreadId) {
        let creator = self.running.get_mut(&thread).and_then(Vec::pop).flatten();
        let now = threads.publish(thread);
        match creator {
            Some(creator) => self.ended.entry(creator).or_default().join(&now),
            None => self.ended_orphans.join(&now),
        }
        for team in self.member.get(&thread).into_iter().flatten() {
            if let Some(team) = self.teams.get_mut(team) {
                team.ended.join(&now);
            }
        }
    }

    /// `thread` has waited for the tasks it created.
    pub(super) fn waited(&mut self, threads: &mut Threads, thread: ThreadId) {
        threads.acquire(thread, self.ended.remove(&thread).as_ref());
        threads.acquire(thread, Some(&self.ended_orphans));
    }
}
