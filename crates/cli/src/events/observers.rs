//! What listens to the target: a stream of lines, or a counter.

use super::selection::{Selection, family_of};
use crate::arguments::Format;
use crate::failure::Failure;
use crate::names::Names;
use crate::progress::Progress;
use raddle_execute::{Observer, Outcome};
use raddle_model::{Event, Place, StackId, ThreadId};
use raddle_report::counts::Counts;
use raddle_report::events::{JsonLines, TextLines};
use raddle_report::names::first_few;
use raddle_report::{Paint, World};
use raddle_wire::options::PlaceCount;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where events are written.
pub struct Output {
    writer: Box<dyn Write>,
    /// For the message, when it fails.
    context: String,
    error: Option<io::Error>,
}

impl Output {
    pub fn new(writer: Box<dyn Write>, context: String) -> Self {
        Output { writer, context, error: None }
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut *self.writer).err();
        }
    }

    /// Flushes, and says what went wrong; a reader that has had enough (`| head`) is no error.
    fn finish(&mut self) -> Result<(), Failure> {
        self.write(|writer| writer.flush());
        match self.error.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::during(&self.context)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Hears nothing: for the engine alone.
pub struct Deaf;

impl Observer for Deaf {
    fn event(&mut self, _: u32, _: Event) {}
    fn stack(&mut self, _: u32, _: StackId, _: Vec<Place>) {}
    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}
    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}
}

/// Writes every selected event as it comes.
pub struct Stream {
    output: Output,
    lines: Lines,
    /// Several processes may speak.
    many: bool,
    selection: Selection,
    names: Names,
    worlds: BTreeMap<u32, World>,
    /// Threads of programs that are gone.
    threads: usize,
    written: u64,
    /// While the target waits for us.
    reading: Option<Progress>,
}

enum Lines {
    Text(TextLines),
    Json(JsonLines),
}

impl Stream {
    pub fn new(
        output: Output,
        (format, paint): (Format, Paint),
        many: bool,
        selection: Selection,
        names: Names,
        hooks: Vec<String>,
    ) -> Self {
        let lines = match format {
            Format::Text => Lines::Text(TextLines::new(paint, here(), hooks)),
            Format::Json => Lines::Json(JsonLines::new(hooks)),
        };
        Stream {
            output,
            lines,
            many,
            selection,
            names,
            worlds: BTreeMap::new(),
            threads: 0,
            written: 0,
            reading: None,
        }
    }

    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Flushes what was written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.output.finish()
    }

    /// What was looked at, in a line.
    pub fn summary(&self, outcome: &Outcome) -> String {
        let now: usize = self.worlds.values().map(|world| world.thread_count()).sum();
        let threads = self.threads + now;
        let counts = [
            (outcome.processes as u64, "process", "processes"),
            (threads as u64, "thread", "threads"),
            (self.written, "event", "events"),
        ];
        let shown = counts.into_iter().skip(usize::from(outcome.processes <= 1));
        let shown: Vec<String> = shown.map(|(n, one, many)| some(n, one, many)).collect();
        let mut text = shown.join(", ");
        let nameless: Vec<String> = outcome
            .without_symbols
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        if !nameless.is_empty() {
            text += &format!("; without symbols: {}", first_few(&nameless));
        }
        text
    }
}

impl Observer for Stream {
    fn reading(&mut self, module: Option<&Path>) {
        self.reading = Progress::reading(module);
    }

    fn program(&mut self, process: u32) {
        if let Some(before) = self.worlds.insert(process, World::default()) {
            self.threads += before.thread_count();
        }
    }

    fn event(&mut self, process: u32, event: Event) {
        let Stream { output, lines, many, selection, names, worlds, written, .. } = self;
        let world = worlds.entry(process).or_default();
        world.begin(&event);
        if selection.wants(&event, world) {
            *written += 1;
            output.write(|out| match lines {
                Lines::Text(lines) => {
                    lines.write(out, many.then_some(process), &event, world, names)
                }
                Lines::Json(lines) => lines.write(out, process, &event, world, names),
            });
        }
        world.end(&event);
    }

    fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>) {
        self.worlds.entry(process).or_default().add_stack(id, frames);
    }

    fn counts(&mut self, _: u32, _: ThreadId, _: Vec<PlaceCount>) {}

    fn event_counts(&mut self, _: u32, _: ThreadId, _: Vec<(String, Place, u64)>) {}

    fn idle(&mut self) {
        self.output.write(|out| out.flush());
    }

    fn listening(&self) -> bool {
        self.output.error.is_none()
    }
}

/// Adds up counts, and names and writes them in the end.
pub struct Counter {
    selection: Selection,
    names: Names,
    programs: Vec<Program>,
    counted: Vec<Counted>,
    /// While the target waits for us.
    reading: Option<Progress>,
}

/// One program that a process has been.
struct Program {
    process: u32,
    world: World,
}

/// So many events of one name.
struct Counted {
    /// Index of the program.
    program: usize,
    thread: ThreadId,
    place: Place,
    name: String,
    n: u64,
}

impl Counter {
    pub fn new(selection: Selection, names: Names) -> Self {
        Counter { selection, names, programs: Vec::new(), counted: Vec::new(), reading: None }
    }

    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Writes the tables, one set per program.
    pub fn write(
        &mut self,
        mut output: Output,
        format: Format,
        paint: Paint,
    ) -> Result<(), Failure> {
        let base = here();
        let tables = self.tables();
        let several = tables.len() > 1;
        for (i, (program, counts)) in tables.into_iter().enumerate() {
            let Program { process, world } = &mut self.programs[program];
            let names = &mut self.names;
            output.write(|out| match format {
                Format::Text => {
                    if several {
                        let gap = if i > 0 { "\n" } else { "" };
                        writeln!(out, "{gap}process {process}")?;
                    }
                    counts.write_text(out, paint, &base, world, names)
                }
                Format::Json => writeln!(out, "{}", counts.to_json(*process, &base, world, names)),
            });
        }
        output.finish()
    }

    /// What was selected, per program. Threads are selected only now, when their names are known.
    fn tables(&mut self) -> BTreeMap<usize, Counts> {
        let mut tables: BTreeMap<usize, Counts> = BTreeMap::new();
        for Counted { program, thread, place, name, n } in self.counted.drain(..) {
            let world = &self.programs[program].world;
            let table = tables.entry(program).or_default();
            let wanted = self.selection.wants_thread(thread, world.thread_name(thread))
                && self.selection.wants_place(place, world);
            if wanted {
                table.add(thread, place, &name, n);
            }
        }
        tables
    }

    /// The program a process is now.
    fn current(&mut self, process: u32) -> usize {
        match self.programs.iter().rposition(|program| program.process == process) {
            Some(program) => program,
            None => {
                self.programs.push(Program { process, world: World::default() });
                self.programs.len() - 1
            }
        }
    }

    fn count(&mut self, program: usize, thread: ThreadId, place: Place, name: &str, n: u64) {
        if n > 0 {
            let name = name.to_owned();
            self.counted.push(Counted { program, thread, place, name, n });
        }
    }
}

impl Observer for Counter {
    fn reading(&mut self, module: Option<&Path>) {
        self.reading = Progress::reading(module);
    }

    fn program(&mut self, process: u32) {
        self.programs.push(Program { process, world: World::default() });
    }

    fn event(&mut self, process: u32, event: Event) {
        let program = self.current(process);
        self.programs[program].world.begin(&event);
        if self.selection.wants_family(event.kind.family()) {
            self.count(program, event.thread, event.place, event.kind.name(), 1);
        }
    }

    fn stack(&mut self, _: u32, _: StackId, _: Vec<Place>) {}

    fn counts(&mut self, process: u32, thread: ThreadId, places: Vec<PlaceCount>) {
        let program = self.current(process);
        for PlaceCount { place, reads, writes, atomics } in places {
            self.count(program, thread, place, "read", reads);
            self.count(program, thread, place, "write", writes);
            self.count(program, thread, place, "atomic-update", atomics);
        }
    }

    fn event_counts(&mut self, process: u32, thread: ThreadId, counts: Vec<(String, Place, u64)>) {
        let program = self.current(process);
        for (name, place, n) in counts {
            if self.selection.wants_family(family_of(&name)) {
                self.count(program, thread, place, &name, n);
            }
        }
    }
}

/// Source paths are shown relative to here.
fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// `1 event`, `2 events`.
fn some(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
