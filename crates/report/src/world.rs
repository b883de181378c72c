//! What must be remembered of a process to name what its events mention: which modules are where,
//! which memory is allocated and since when, what its threads are called. Fed with the events
//! themselves, in order.

use crate::names::{AddressName, PlaceName, Symbols};
use crate::per_thread::PerThread;
use raddle_model::{Address, Event, EventKind, ModuleId, Place, StackId, ThreadId};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

/// Blocks this large are looked for separately: inside them (a mapping that an allocator cut up)
/// lie many small ones, which must not hide them.
const LARGE_BLOCK: u64 = 128 * 1024;
/// How many large blocks before an address are looked at: mappings nest a few levels at most.
const NESTING: usize = 8;
/// Names of addresses that are remembered, before the memory starts afresh.
const CACHED_NAMES: usize = 1 << 18;

/// Who does what no thread does: the end of the process.
pub(crate) const NO_THREAD: ThreadId = ThreadId(0);

/// One process, as far as names need it.
#[derive(Debug, Default)]
pub struct World {
    modules: HashMap<ModuleId, Rc<str>>,
    /// Loaded now: end and module by load address.
    loaded: BTreeMap<u64, (u64, ModuleId)>,
    small: BTreeMap<u64, Block>,
    large: BTreeMap<u64, Block>,
    /// Their names, if they have any.
    threads: PerThread<Option<Rc<str>>>,
    stacks: HashMap<StackId, Vec<Place>>,
    places: HashMap<Place, Rc<PlaceName>>,
    callers: HashMap<Place, Rc<PlaceName>>,
    place_texts: HashMap<Place, Rc<str>>,
    place_values: HashMap<Place, Rc<RawValue>>,
    variables: HashMap<(ModuleId, u64), Option<Rc<str>>>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    size: u64,
    allocated_at: Place,
}

impl World {
    /// Takes note of what an event brings; to be called before it is rendered.
    pub fn begin(&mut self, event: &Event) {
        if event.thread != NO_THREAD && self.threads.get(event.thread).is_none() {
            self.threads.insert(event.thread, None);
        }
        match &event.kind {
            EventKind::ThreadName { name } => {
                self.threads.insert(event.thread, Some(name.as_str().into()));
            }
            EventKind::ModuleLoad { module, path, base, end } => {
                self.modules.insert(*module, path.as_str().into());
                self.loaded.insert(base.0, (end.0, *module));
            }
            EventKind::Allocate { address, size } => {
                self.forget(*address, 0);
                let block = Block { size: *size, allocated_at: event.place };
                let blocks = if *size < LARGE_BLOCK { &mut self.small } else { &mut self.large };
                blocks.insert(address.0, block);
            }
            _ => {}
        }
    }

    /// Takes note of what an event takes away; to be called after it was rendered.
    pub fn end(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Free { address, size } => self.forget(*address, *size),
            EventKind::ModuleUnload { module } => {
                self.loaded.retain(|_, (_, loaded)| loaded != module);
            }
            _ => {}
        }
    }

    /// Remembers a call stack.
    pub fn add_stack(&mut self, id: StackId, frames: Vec<Place>) {
        self.stacks.insert(id, frames);
    }

    /// A call stack, innermost first; empty if there is none.
    fn stack(&self, id: StackId) -> &[Place] {
        self.stacks.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Every thread that did something, with its name.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, Option<&str>)> {
        self.threads.iter().map(|(id, name)| (id, name.as_deref()))
    }

    /// How many there were.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// A thread's name, if it has one.
    pub fn thread_name(&self, thread: ThreadId) -> Option<&str> {
        self.threads.get(thread)?.as_deref()
    }

    /// The path of a module.
    pub fn module(&self, module: ModuleId) -> Option<&Rc<str>> {
        self.modules.get(&module)
    }

    /// What a place is called.
    pub fn place(&mut self, place: Place, symbols: &mut dyn Symbols) -> Rc<PlaceName> {
        let name = || Rc::new(named(&self.modules, place, place.offset, symbols));
        self.places.entry(place).or_insert_with(name).clone()
    }

    /// What a place is called, as text ([`PlaceName::text`]; `base` must always be the same).
    pub(crate) fn place_text(
        &mut self,
        place: Place,
        base: &Path,
        symbols: &mut dyn Symbols,
    ) -> Rc<str> {
        if let Some(text) = self.place_texts.get(&place) {
            return text.clone();
        }
        let text: Rc<str> = self.place(place, symbols).text(base).into();
        self.place_texts.insert(place, text.clone());
        text
    }

    /// What a place is called, as JSON.
    pub(crate) fn place_json(
        &mut self,
        place: Place,
        symbols: &mut dyn Symbols,
    ) -> serde_json::Result<Rc<RawValue>> {
        if let Some(value) = self.place_values.get(&place) {
            return Ok(value.clone());
        }
        let name = self.place(place, symbols);
        let value: Rc<RawValue> = serde_json::value::to_raw_value(&*name)?.into();
        self.place_values.insert(place, value.clone());
        Ok(value)
    }

    /// What a caller is called: its return address may already belong to the next line, so the
    /// byte before it, inside the call, is asked about.
    pub fn caller(&mut self, place: Place, symbols: &mut dyn Symbols) -> Rc<PlaceName> {
        let inside = place.offset.saturating_sub(1);
        let name = || Rc::new(named(&self.modules, place, inside, symbols));
        self.callers.entry(place).or_insert_with(name).clone()
    }

    /// The names of a whole call stack, innermost first.
    pub fn stack_names(&mut self, id: StackId, symbols: &mut dyn Symbols) -> Vec<Rc<PlaceName>> {
        let places = self.stack(id).to_vec();
        let mut names = Vec::with_capacity(places.len());
        for (depth, place) in places.into_iter().enumerate() {
            names.push(match depth {
                0 => self.place(place, symbols),
                _ => self.caller(place, symbols),
            });
        }
        names
    }

    /// What lies at an address.
    pub fn address(&mut self, address: Address, symbols: &mut dyn Symbols) -> AddressName {
        let nearest = self.loaded.range(..=address.0).next_back();
        if let Some((&base, &(end, module))) = nearest
            && address.0 < end
            && let Some(path) = self.modules.get(&module).cloned()
        {
            let offset = address.0 - base;
            return match self.variable(module, &path, offset, symbols) {
                Some(name) => AddressName::Variable { name, module: path },
                None => AddressName::Module { module: path, offset },
            };
        }
        match self.block(address.0) {
            Some((start, block)) => AddressName::Block {
                start,
                size: block.size,
                offset: address.0 - start,
                allocated_at: self.place(block.allocated_at, symbols),
            },
            None => AddressName::Unknown,
        }
    }

    fn variable(
        &mut self,
        module: ModuleId,
        path: &str,
        offset: u64,
        symbols: &mut dyn Symbols,
    ) -> Option<Rc<str>> {
        if self.variables.len() >= CACHED_NAMES {
            self.variables.clear();
        }
        self.variables
            .entry((module, offset))
            .or_insert_with(|| symbols.variable(path, offset).map(Rc::from))
            .clone()
    }

    fn block(&self, address: u64) -> Option<(u64, Block)> {
        let holds = |(start, block): &(&u64, &Block)| address - **start < block.size.max(1);
        let small = self.small.range(..=address).next_back().filter(holds);
        let large = || self.large.range(..=address).rev().take(NESTING).find(holds);
        small.or_else(large).map(|(start, block)| (*start, *block))
    }

    /// Forgets the block at `address`, and with a size every block in that stretch.
    fn forget(&mut self, address: Address, size: u64) {
        for blocks in [&mut self.small, &mut self.large] {
            blocks.remove(&address.0);
            let end = address.0.saturating_add(size);
            let inside: Vec<u64> = blocks
                .range(address.0..end)
                .filter(|(start, block)| *start + block.size <= end)
                .map(|(start, _)| *start)
                .collect();
            for start in inside {
                blocks.remove(&start);
            }
        }
    }
}

/// The name of a place, by the symbols at `offset` of its module.
fn named(
    modules: &HashMap<ModuleId, Rc<str>>,
    place: Place,
    offset: u64,
    symbols: &mut dyn Symbols,
) -> PlaceName {
    if place == Place::RECURSION {
        return PlaceName::recursion();
    }
    let module = modules.get(&place.module).cloned();
    let frames = module.as_ref().map(|path| symbols.frames(path, offset)).unwrap_or_default();
    PlaceName { module, offset: place.offset, frames }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::names::Frame;

    /// Symbols by arithmetic: line = offset, variable `v<offset>` above 0x1000.
    pub(crate) struct Made;

    impl Symbols for Made {
        fn frames(&mut self, module: &str, offset: u64) -> Vec<Frame> {
            if module.ends_with("stripped.so") {
                return Vec::new();
            }
            vec![Frame {
                function: Some(format!("f{offset}")),
                file: Some("/w/bank.c".into()),
                line: Some(offset as u32),
                column: Some(5),
                inlined: false,
            }]
        }

        fn variable(&mut self, _: &str, offset: u64) -> Option<String> {
            (offset >= 0x1000).then(|| format!("v{offset:x}"))
        }
    }

    pub(crate) fn event(order: u64, thread: u32, offset: u64, kind: EventKind) -> Event {
        let place = Place { module: ModuleId(1), offset };
        Event { order, thread: ThreadId(thread), place, stack: StackId::NONE, kind }
    }

    pub(crate) fn load(id: u32, path: &str, base: u64, end: u64) -> EventKind {
        EventKind::ModuleLoad {
            module: ModuleId(id),
            path: path.into(),
            base: Address(base),
            end: Address(end),
        }
    }

    fn name(world: &mut World, address: u64) -> String {
        let name = world.address(Address(address), &mut Made);
        name.text(address, std::path::Path::new("/w"))
    }

    fn happen(world: &mut World, kind: EventKind) {
        let event = event(0, 1, 20, kind);
        world.begin(&event);
        world.end(&event);
    }

    #[test]
    fn a_stack_says_where_calls_of_a_recursion_were_left_out() {
        let mut world = World::default();
        happen(&mut world, load(1, "/w/bank", 0x40_0000, 0x40_9000));
        let place = |offset| Place { module: ModuleId(1), offset };
        world.add_stack(StackId(1), vec![place(7), place(9), Place::RECURSION, place(21)]);
        let names = world.stack_names(StackId(1), &mut Made);
        let functions: Vec<_> =
            names.iter().map(|name| name.frames[0].function.clone().unwrap()).collect();
        assert_eq!(functions, ["f7", "f8", "[recursion: calls left out]", "f20"]);
    }

    #[test]
    fn addresses_are_named_while_their_module_is_loaded() {
        let mut world = World::default();
        happen(&mut world, load(1, "/w/bank", 0x40_0000, 0x40_9000));
        assert_eq!(name(&mut world, 0x40_1004), "v1004");
        assert_eq!(name(&mut world, 0x40_0004), "bank+0x4");
        assert_eq!(name(&mut world, 0x40_9000), "0x409000");
        happen(&mut world, EventKind::ModuleUnload { module: ModuleId(1) });
        assert_eq!(name(&mut world, 0x40_1004), "0x401004");
        // Its places keep their names.
        let place = world.place(Place { module: ModuleId(1), offset: 7 }, &mut Made);
        assert_eq!(place.text(std::path::Path::new("/w")), "bank.c:7 in f7");
    }

    #[test]
    fn blocks_are_named_from_allocation_to_free() {
        let mut world = World::default();
        happen(&mut world, load(1, "/w/bank", 0x1, 0x2));
        let allocate = |address, size| EventKind::Allocate { address: Address(address), size };
        happen(&mut world, allocate(0x10_0000, 1 << 20));
        happen(&mut world, allocate(0x10_0100, 64));
        assert_eq!(name(&mut world, 0x10_0108), "block of 64 bytes from bank.c:20, byte 8");
        assert_eq!(name(&mut world, 0x10_0140), "block of 1048576 bytes from bank.c:20, byte 320");
        happen(&mut world, EventKind::Free { address: Address(0x10_0100), size: 0 });
        assert_eq!(name(&mut world, 0x10_0108), "block of 1048576 bytes from bank.c:20, byte 264");
        happen(&mut world, allocate(0x10_0100, 64));
        happen(&mut world, EventKind::Free { address: Address(0x10_0000), size: 1 << 20 });
        assert_eq!(name(&mut world, 0x10_0108), "0x100108");
    }

    #[test]
    fn threads_are_known_by_their_latest_name() {
        let mut world = World::default();
        happen(&mut world, EventKind::ThreadExit);
        assert_eq!(world.threads().collect::<Vec<_>>(), [(ThreadId(1), None)]);
        happen(&mut world, EventKind::ThreadName { name: "io".into() });
        assert_eq!(world.thread_name(ThreadId(1)), Some("io"));
    }
}
