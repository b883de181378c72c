//! Memory that comes into being or ceases to be: its cells, and who shared its lines, are made zero.
//!
//! A word for each chunk of memory says who has touched it, so that what nobody has touched is not looked at: the kernel would have to
//! give memory for it to be found empty.

use super::{CHUNK, OLDER_REGIONS, PAGE, REGIONS, Shadow, TICKS, discard_shared};
use raddle_analyse::fast::cell::{BLOCK, Cell, GRANULE, LINE};
use raddle_analyse::fast::protocol::{OLDER, has_room, slots_of};
use raddle_analyse::fast::{Planes, Side};
use std::sync::atomic::{AtomicU64, Ordering};

/// So large a stretch that is forgotten is given back to the kernel, which then tells all processors, for each stretch of each plane. Of
/// a smaller one the cells are made zero: it is a block of the heap, as a rule, which is used again (compressing in blocks of 128 KiB
/// took a tenth less).
const GIVEN_BACK: u64 = 1 << 20;

/// What becomes of the pages of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    /// They are given back to the kernel.
    Given,
    /// They stay, and are zero.
    Kept,
}

impl Shadow {
    /// Makes all of `start..end`, both multiples of [`LINE`], as if never touched.
    pub(super) fn forget(&self, start: u64, end: u64) {
        if !self.covers(start, end) {
            return;
        }
        let (first, last) = (start.next_multiple_of(CHUNK), end / CHUNK * CHUNK);
        if end - start < GIVEN_BACK || first >= last {
            return self.forget_pages(start, end, Pages::Kept);
        }
        // Of a stack this is the part that its thread has used. Stacks are used again and again, each time perhaps by a thread with
        // another slot; if they were kept, there would be cells of every slot for every stack in the end.
        self.forget_pages(start, first, Pages::Given);
        self.forget_pages(last, end, Pages::Given);
        let mut chunk = first / CHUNK;
        while chunk < last / CHUNK {
            let mut slots = 0;
            let touched = |chunk: &u64| {
                let touched = self.is_touched(*chunk);
                if touched {
                    slots |= self.table(self.touched, *chunk).swap(0, Ordering::AcqRel);
                }
                touched
            };
            let end = chunk + (chunk..last / CHUNK).take_while(touched).count() as u64;
            if chunk < end {
                self.forget_chunks(slots, chunk * CHUNK, end * CHUNK);
            }
            // That one is not touched.
            chunk = end + 1;
        }
    }

    /// Forgets all that a slot has done.
    pub(super) fn forget_slot(&self, slot: usize) {
        for region in slot * REGIONS..(slot + 1) * REGIONS {
            for start in self.windows() {
                let cells = (start ^ self.region_key(region)) & !(CHUNK - 1);
                self.discard(cells, 1 << self.window_bits);
            }
        }
        // To the ends of its pages: behind it there is more than a page that is nobody's.
        let (first, last) = (self.lock_table(slot), self.lock_table(slot) + TICKS * 4);
        self.discard(first / PAGE * PAGE, last.next_multiple_of(PAGE) - first / PAGE * PAGE);
        if slot + 1 == self.slots {
            self.rooms.clear();
        }
    }

    /// Forgets everything.
    pub(super) fn forget_all(&self) {
        for slot in 0..self.used.load(Ordering::Acquire) {
            self.forget_slot(slot);
        }
        for start in self.windows() {
            self.discard(self.sharers + start / LINE * 8, (1 << self.window_bits) / LINE * 8);
            self.discard(
                self.blocks_alike + start / BLOCK * 4,
                (1 << self.window_bits) / BLOCK * 4,
            );
        }
    }

    fn is_touched(&self, chunk: u64) -> bool {
        self.table(self.touched, chunk).load(Ordering::Acquire) != 0
    }

    /// Forgets whole chunks that these have touched, and gives the pages of their cells back.
    fn forget_chunks(&self, slots: u32, first: u64, last: u64) {
        self.close_rooms(first, last);
        self.age.fetch_add(1, Ordering::Relaxed);
        for region in slots_of(slots).flat_map(|slot| slot * REGIONS..(slot + 1) * REGIONS) {
            self.discard((first ^ self.region_key(region)) & !(CHUNK - 1), last - first);
        }
        self.discard(self.sharers + first / LINE * 8, (last - first) / LINE * 8);
        self.discard(self.blocks_alike + first / BLOCK * 4, (last - first) / BLOCK * 4);
    }

    /// Closes the rooms of whole chunks. Their numbers would be lost with the planes. Most chunks have none, and are not looked
    /// at: of the stack that a new thread gets, it would take the kernel 256 pages to say that there is nothing.
    fn close_rooms(&self, start: u64, end: u64) {
        let chunks = self.rooms.chunks(start / CHUNK..end / CHUNK);
        let lines = |chunk: u64| chunk * CHUNK / LINE..(chunk + 1) * CHUNK / LINE;
        for line in chunks.into_iter().flat_map(lines) {
            for side in [Side::Write, Side::Read] {
                if has_room(self.sharers(Side::Read, line), side) {
                    let granules = line * LINE / GRANULE..(line + 1) * LINE / GRANULE;
                    granules.for_each(|granule| {
                        self.rooms.close(self.room_word(side, granule), granule)
                    });
                }
            }
        }
    }

    /// Forgets whole lines, page by page where they fill one.
    fn forget_pages(&self, start: u64, end: u64, pages: Pages) {
        let mut at = start;
        while at < end {
            let chunk_end = (at / CHUNK + 1) * CHUNK;
            if !self.is_touched(at / CHUNK) {
                at = chunk_end;
                continue;
            }
            let page_end = ((at / PAGE + 1) * PAGE).min(end);
            match page_end - at == PAGE {
                true => self.forget_page(at, pages),
                false => self.forget_lines(u32::MAX, at, page_end),
            }
            at = page_end;
        }
    }

    fn forget_page(&self, page: u64, pages: Pages) {
        let lines = page / LINE..(page + PAGE) / LINE;
        let sharers = |side| lines.clone().fold(0, |all, line| all | self.sharers(side, line));
        let (writers, readers) = (sharers(Side::Write), sharers(Side::Read));
        if writers | readers == 0 {
            return;
        }
        let crowd = self.slots - 1;
        for (side, sharers) in [(Side::Write, writers), (Side::Read, readers)] {
            for slot in slots_of(sharers).filter(|slot| *slot != crowd) {
                let newest = slot * REGIONS + side as usize;
                // Older accesses are among the last regions of a slot.
                let older = (writers & OLDER != 0).then_some(newest + OLDER_REGIONS);
                for region in std::iter::once(newest).chain(older) {
                    self.forget_cells(region, page, pages);
                }
            }
        }
        // Those of the crowd, which is one slot, stay; and who shared them all.
        self.forget_lines(1 << crowd, page, page + PAGE);
    }

    /// Makes the cells of a page in a region zero.
    fn forget_cells(&self, region: usize, page: u64, pages: Pages) {
        let cells = (page ^ self.region_key(region)) & !(PAGE - 1);
        match pages {
            Pages::Given => self.discard(cells, PAGE),
            Pages::Kept => {
                for at in (cells..cells + PAGE).step_by(8) {
                    // SAFETY: in the region's reserved pages, as in `Shadow::word`.
                    let cell = unsafe { AtomicU64::from_ptr(at as *mut u64) };
                    cell.store(Cell::EMPTY.0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Forgets whole lines: of those of these slots who shared them, the cells; then who shared them. The cells of others are zero.
    fn forget_lines(&self, slots: u32, start: u64, end: u64) {
        for line in start / LINE..end / LINE {
            let granules = line * LINE / GRANULE..(line + 1) * LINE / GRANULE;
            let has_older = self.sharers(Side::Write, line) & OLDER != 0;
            for side in [Side::Write, Side::Read] {
                for slot in slots_of(self.sharers(side, line) & slots) {
                    let is_crowd = slot + 1 == self.slots;
                    let has_rooms = has_room(self.sharers(Side::Read, line), side);
                    for granule in granules.clone() {
                        self.set_cell(slot, side, granule, Cell::EMPTY);
                        if is_crowd && has_rooms {
                            self.rooms.close(self.room_word(side, granule), granule);
                        } else if has_older && !is_crowd {
                            self.set_older(slot, side, granule, Cell::EMPTY);
                        }
                    }
                }
            }
            if self.sharers(Side::Write, line) | self.sharers(Side::Read, line) != 0 {
                self.clear_sharers(line);
            }
        }
    }

    /// Makes reserved memory zero again and gives its pages back.
    fn discard(&self, start: u64, length: u64) {
        match self.is_copied {
            // SAFETY: our own reservation, in which every value means something, zero that nothing is known.
            true => unsafe {
                libc::madvise(start as *mut libc::c_void, length as usize, libc::MADV_DONTNEED);
            },
            false => discard_shared(start, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reservation;
    use super::*;
    use raddle_analyse::fast::access::AccessId;
    use raddle_analyse::fast::cell::WHOLE;
    use raddle_analyse::fast::protocol::WRITE_ROOM;

    #[test]
    fn what_is_forgotten_is_empty_and_what_nobody_touched_is_left_alone() {
        // Where there is no address space for it, there is nothing to test.
        let Some(shadow) = Shadow::new(false) else { return };
        assert!(shadow.use_slot(shadow.slots - 1), "in a fixed layout (setarch -R) there is room");
        let Some(memory) = Reservation::new(4 << 20) else { return };
        let start = memory.start().next_multiple_of(CHUNK);
        let age = shadow.age();
        touch_and_forget(&shadow, start, 8);
        assert_eq!(shadow.age(), age, "its pages were kept");
        touch_and_forget(&shadow, start, 32);
        assert!(shadow.age() > age, "pages were given back");
    }

    /// In the fourth, fifth and eighth of so many chunks.
    fn touch_and_forget(shadow: &Shadow, start: u64, chunks: u64) {
        let crowd = shadow.slots - 1;
        let end = start + chunks * CHUNK;
        let touched =
            |at: u64| shadow.table(shadow.touched, start / CHUNK + at).load(Ordering::Relaxed);
        let cell = Cell::new(5, WHOLE, AccessId::default());
        let places = [(0, 3 * CHUNK + 640), (2, 4 * CHUNK), (crowd, 7 * CHUNK + 8)];
        for (slot, at) in places {
            let address = start + at;
            shadow.set_cell(slot, Side::Write, address / GRANULE, cell);
            shadow.add_sharers(Side::Write, address / LINE, 1 << slot);
            assert_eq!(
                (shadow.begin_block(address / BLOCK, 7), shadow.begin_block(address / BLOCK, 8)),
                (0, 7)
            );
        }
        let older = (start + 4 * CHUNK) / GRANULE;
        shadow.set_older(2, Side::Write, older, cell);
        shadow.add_sharers(Side::Write, older * GRANULE / LINE, OLDER);
        let split = shadow.open_strip(2, Side::Write, older);
        assert_eq!(shadow.open_strip(2, Side::Write, older), split);
        let with_room = (start + 7 * CHUNK + 8) / GRANULE;
        shadow.add_sharers(Side::Read, with_room * GRANULE / LINE, WRITE_ROOM);
        let room = shadow.open_room(Side::Write, with_room).unwrap();
        shadow.set_entry(room, 70, cell);
        assert!([3, 4, 7].into_iter().all(|at| touched(at) != 0));
        assert_eq!(touched(4) & !OLDER, 1 << 2);

        shadow.clear(start, start + 3 * CHUNK);
        let untouched = (start + 3 * CHUNK + 640) / GRANULE;
        assert_eq!(Planes::cell(shadow, 0, Side::Write, untouched), cell, "it was not meant");
        shadow.clear(start, end);
        for (slot, at) in places {
            let (granule, line) = ((start + at) / GRANULE, (start + at) / LINE);
            assert_eq!(Planes::cell(shadow, slot, Side::Write, granule), Cell::EMPTY);
            let alike = shadow.block_alike((start + at) / BLOCK);
            assert_eq!((shadow.sharers(Side::Write, line), alike), (0, 0));
        }
        assert_eq!(shadow.older(2, Side::Write, older), Some(Cell::EMPTY));
        assert_ne!(shadow.open_strip(2, Side::Write, older), split);
        shadow.clear_slot(2);
        assert_eq!(
            (shadow.room(Side::Write, with_room), shadow.entry(room, 70)),
            (None, Cell::EMPTY)
        );
        // The room is there for others.
        assert!(shadow.rooms.chunks(0..u64::MAX).is_empty());
        assert_eq!(shadow.open_room(Side::Read, with_room), Some(room));
        assert_eq!(shadow.rooms.chunks(0..u64::MAX).len(), 1);
        shadow.rooms.close(shadow.room_word(Side::Read, with_room), with_room);
        // Line by line, too.
        let line = start / LINE + 1;
        shadow.add_sharers(Side::Read, line, 1);
        let last_block = (line + 1) * LINE / BLOCK - 1;
        shadow.begin_block(last_block, 7);
        shadow.clear(line * LINE, (line + 1) * LINE);
        assert_eq!((shadow.sharers(Side::Read, line), shadow.block_alike(last_block)), (0, 0));
    }
}
