//! Judging: of accesses that met, which are races, and as what they are reported.

use super::{FastHybrid, Now, State};
use crate::fast::access::Description;
use crate::fast::cell::{Bytes, Cell, GRANULE};
use crate::fast::protocol::{Planes, Suspect};
use crate::fast::special::Kept;
use crate::handover::Race;
use crate::order::Order;
use crate::touch::{Kind, PlainReads, kinds_conflict, kinds_rule};
use raddle_model::finding::{Certainty, Finding, FindingAccess, FindingKind, Rule};
use raddle_model::lockset::LockSet;
use raddle_model::{AccessKind, Address, ThreadId};

impl<P: Planes> FastHybrid<P> {
    /// Sorts out those that a common lock excludes.
    pub(super) fn suspect(&self, now: Now<'_>, suspect: Suspect, suspects: &mut Vec<Suspect>) {
        let locks = self.planes.locks(suspect.slot, suspect.cell.tick());
        let writes = |access| self.accesses.one(access).is_none_or(|one| one.kind.writes());
        let later = writes(now.access);
        self.accesses.each(suspect.access, suspect.bytes, |bytes, access| {
            let earlier = writes(access);
            if !earlier && !later {
                return;
            }
            if !self.locks.protects(locks, now.standing.locks(), (earlier, later)) {
                suspects.push(Suspect { bytes, access, ..suspect });
            } else if !later {
                now.standing.note_handed();
            }
        });
    }

    /// What is kept of a granule beside its cells, as far as it overlaps `bytes`, is not ordered before
    /// the access, and shares no lock with it.
    pub(super) fn kept_suspects(
        &self,
        now: Now<'_>,
        granule: u64,
        (bytes, kept): (Bytes, &[Kept]),
        suspects: &mut Vec<Suspect>,
    ) {
        for kept in kept {
            let (common, slot) = (kept.bytes & bytes, kept.slot);
            if common != 0 && !now.standing.knows(slot, kept.tick) {
                let access = kept.access;
                let cell = Cell::new(kept.tick, kept.bytes, access);
                self.suspect(now, Suspect { slot, cell, access, granule, bytes: common }, suspects);
            }
        }
    }

    /// Reports what conflicts.
    pub(super) fn judge(&self, now: Now<'_>, suspects: &[Suspect]) {
        let mut state = self.lock();
        // What it comes after in the full order is asked for.
        self.catch_up(&mut state, now.thread);
        let reads = PlainReads::AtomicBesideUpdates;
        let races = suspects.iter().filter_map(|s| self.race(&state, now, s, reads)).collect();
        self.add_races(&mut state, now.thread, races);
    }

    /// The same where each byte may or may not be a synchronisation variable.
    pub(super) fn races_by_byte(
        &self,
        state: &State,
        now: Now<'_>,
        suspect: &Suspect,
    ) -> Vec<Race> {
        let bytes = (0..GRANULE).filter(|byte| suspect.bytes >> byte & 1 == 1);
        let race = |byte: u64| {
            let at = suspect.granule * GRANULE + byte;
            let one = Suspect { bytes: 1 << byte, ..*suspect };
            self.race(state, now, &one, state.execution.plain_reads(at..at + 1))
        };
        bytes.filter_map(race).collect()
    }

    /// The race between an access and a suspect that shares no lock with it, if it is one.
    fn race(
        &self,
        state: &State,
        now: Now<'_>,
        earlier: &Suspect,
        reads: PlainReads,
    ) -> Option<Race> {
        let (was, is) = (self.accesses.one(earlier.access)?, self.accesses.one(now.access)?);
        if !kinds_conflict(was.kind, is.kind, reads) {
            return None;
        }
        let (then, stamp) = self.when(state, earlier.slot, earlier.cell.tick());
        let ordered = if earlier.slot == self.crowd.slot() {
            let mut known = state.execution.known(now.thread, Order::Full);
            known.nth(stamp.chain.0 as usize).is_some_and(|known| stamp.tick <= known)
        } else {
            earlier.cell.tick() <= now.standing.full(earlier.slot)
        };
        let at = earlier.granule * GRANULE;
        if ordered && (self.observed_only || self.was_withdrawn(state, (stamp, at), now.thread)) {
            return None;
        }
        let then_held = self.planes.locks(earlier.slot, earlier.cell.tick());
        let now_held = now.standing.locks();
        let (before, held) = (self.locks.get(then_held)?, self.locks.get(now_held)?);
        let mut rules = vec![match before.excludes(held) || before.shares_only(held) {
            true => Rule::SharedSidesOnly,
            false => Rule::NoCommonLock,
        }];
        let certainty = match ordered {
            true => {
                rules.push(Rule::LockOrderIgnored);
                Certainty::Predicted
            }
            false => Certainty::Observed,
        };
        let synchronisation = reads == PlainReads::Atomic;
        let kinds = [was.kind, is.kind];
        rules.extend(kinds_rule(kinds, synchronisation));
        rules.sort();
        let byte = (0..GRANULE)
            .filter(|byte| earlier.bytes >> byte & 1 == 1)
            .find(|byte| !state.execution.is_benign(at + byte))?;
        let finding = Finding {
            kind: FindingKind::DataRace,
            certainty,
            address: Address(at + byte),
            accesses: vec![
                shown(was, then, before, synchronisation),
                shown(is, now.thread, held, synchronisation),
            ],
            count: 1,
            rules,
            waits: Vec::new(),
        };
        Some((finding, stamp))
    }
}

fn shown(
    access: &Description,
    thread: ThreadId,
    locks: &LockSet,
    synchronisation: bool,
) -> FindingAccess {
    FindingAccess {
        kind: access.kind.into(),
        size: access.size,
        atomic: access.kind.is_atomic()
            || synchronisation && access.kind == Kind::Access(AccessKind::Read),
        thread,
        locks: locks.iter().copied().collect(),
        place: access.place,
        stack: access.stack,
    }
}
