//! How many of what: per thread and per place, as a table for people or one JSON object.

use crate::names::{PlaceName, Symbols};
use crate::paint::{Paint, Tint};
use crate::world::{NO_THREAD, World};
use raddle_model::{Place, ThreadId};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

/// How many of the hottest places are shown.
const SHOWN: usize = 20;
/// How many of the hottest instructions get a name, to be added up by source line: naming one
/// costs microseconds, and beyond this rank nothing is hot.
const NAMED: usize = 5_000;
/// Version of the JSON form.
const SCHEMA: &str = "raddle-event-counts/1";

/// The columns of the table: heading, and the events counted there. The first three are always
/// shown, the others when they are not all zero; what no column names is "other".
const COLUMNS: [(&str, &[&str]); 15] = [
    ("reads", &["read"]),
    ("writes", &["write"]),
    ("atomics", &["atomic-update", "atomic-read", "atomic-write"]),
    ("ranges", &["read-range", "write-range"]),
    ("allocations", &["allocate"]),
    ("frees", &["free"]),
    ("locks", &["lock-acquired"]),
    ("waits", &["condition-wait-begin"]),
    ("signals", &["condition-signal"]),
    ("barriers", &["barrier-enter"]),
    ("semaphores", &["semaphore-post", "semaphore-acquired"]),
    ("futexes", &["futex-wait", "futex-wake"]),
    ("functions", &["function-enter"]),
    ("outputs", &["output"]),
    ("other", &[]),
];
const ALWAYS_SHOWN: usize = 3;

/// Events by name.
type Tally = BTreeMap<String, u64>;

/// The counts of one process.
#[derive(Debug, Default)]
pub struct Counts {
    threads: BTreeMap<ThreadId, Tally>,
    places: HashMap<Place, Tally>,
}

/// A place among the hottest.
struct Hot {
    name: Rc<PlaceName>,
    tally: Tally,
}

impl Counts {
    /// Counts `n` events of this name.
    pub fn add(&mut self, thread: ThreadId, place: Place, name: &str, n: u64) {
        if n == 0 {
            return;
        }
        let tallies =
            [self.threads.entry(thread).or_default(), self.places.entry(place).or_default()];
        for tally in tallies {
            match tally.get_mut(name) {
                Some(count) => *count += n,
                None => {
                    tally.insert(name.to_owned(), n);
                }
            }
        }
    }

    /// All events counted.
    pub fn total(&self) -> u64 {
        self.threads.values().flat_map(Tally::values).sum()
    }

    /// Writes the tables. Source files below `base` are shown relative to it.
    pub fn write_text(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        base: &Path,
        world: &mut World,
        symbols: &mut dyn Symbols,
    ) -> io::Result<()> {
        let mut total = Tally::new();
        for (name, n) in self.threads.values().flatten() {
            *total.entry(name.clone()).or_default() += n;
        }
        let thread = |(thread, tally): (&ThreadId, &Tally)| {
            let name = match world.thread_name(*thread) {
                _ if *thread == NO_THREAD => "-".to_owned(),
                Some(name) => format!("{thread} {name}"),
                None => thread.to_string(),
            };
            (name, tally.clone())
        };
        let mut rows: Vec<(String, Tally)> = self.threads.iter().map(thread).collect();
        rows.push(("all threads".to_owned(), total));
        write_table(out, paint, "thread", &rows)?;

        let hottest = self.hottest(base, world, symbols);
        if !hottest.is_empty() {
            writeln!(out)?;
            let rows: Vec<(String, Tally)> =
                hottest.into_iter().map(|hot| (hot.name.text(base), hot.tally)).collect();
            write_table(out, paint, "hottest places", &rows)?;
        }
        Ok(())
    }

    /// The same as JSON.
    pub fn to_json(
        &self,
        process: u32,
        base: &Path,
        world: &mut World,
        symbols: &mut dyn Symbols,
    ) -> Value {
        let tally = |tally: &Tally| -> Map<String, Value> {
            tally.iter().map(|(name, n)| (name.clone(), json!(n))).collect()
        };
        let threads: Vec<Value> = self
            .threads
            .iter()
            .map(|(thread, counts)| {
                let name = world.thread_name(*thread);
                json!({ "thread": thread, "name": name, "events": tally(counts) })
            })
            .collect();
        let places: Vec<Value> = self
            .hottest(base, world, symbols)
            .iter()
            .map(|hot| json!({ "place": &*hot.name, "events": tally(&hot.tally) }))
            .collect();
        json!({ "schema": SCHEMA, "process": process, "threads": threads, "places": places })
    }

    /// The hottest places, instructions of one source line and function added up.
    fn hottest(&self, base: &Path, world: &mut World, symbols: &mut dyn Symbols) -> Vec<Hot> {
        let mut places: Vec<(u64, Place)> =
            self.places.iter().map(|(place, tally)| (sum(tally), *place)).collect();
        places.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        places.truncate(NAMED);
        let mut by_text: HashMap<String, usize> = HashMap::new();
        let mut hottest: Vec<Hot> = Vec::new();
        for (_, place) in places {
            let name = world.place(place, symbols);
            let index = *by_text.entry(name.text(base)).or_insert_with(|| {
                hottest.push(Hot { name, tally: Tally::new() });
                hottest.len() - 1
            });
            for (event, n) in &self.places[&place] {
                *hottest[index].tally.entry(event.clone()).or_default() += n;
            }
        }
        hottest.sort_by_key(|hot| std::cmp::Reverse(sum(&hot.tally)));
        hottest.truncate(SHOWN);
        hottest
    }
}

fn sum(tally: &Tally) -> u64 {
    tally.values().sum()
}

fn cell(tally: &Tally, column: usize) -> u64 {
    let count = |names: &[&str]| names.iter().filter_map(|name| tally.get(*name)).sum();
    match COLUMNS[column].1 {
        [] => sum(tally) - COLUMNS.iter().map(|(_, names)| count(names)).sum::<u64>(),
        names => count(names),
    }
}

/// Writes a table: the columns that are not all zero, to the right, then what the rows are about.
fn write_table(
    out: &mut dyn Write,
    paint: Paint,
    about: &str,
    rows: &[(String, Tally)],
) -> io::Result<()> {
    let mut heading = String::new();
    let mut lines = vec![String::new(); rows.len()];
    for (column, (title, _)) in COLUMNS.iter().enumerate() {
        let cells: Vec<u64> = rows.iter().map(|(_, tally)| cell(tally, column)).collect();
        if column >= ALWAYS_SHOWN && cells.iter().all(|n| *n == 0) {
            continue;
        }
        let widest = cells.iter().map(|n| n.to_string().len()).max().unwrap_or(0);
        let width = widest.max(title.len());
        heading += &format!("{title:>width$}  ");
        for (line, n) in lines.iter_mut().zip(cells) {
            *line += &format!("{n:>width$}  ");
        }
    }
    heading += about;
    writeln!(out, "{}", paint.text(Tint::Heading, heading))?;
    for (line, (what, _)) in lines.iter().zip(rows) {
        writeln!(out, "{line}{what}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::tests::{Made, event, load};
    use raddle_model::{EventKind, ModuleId};

    fn counted() -> (Counts, World) {
        let mut world = World::default();
        world.begin(&event(0, 1, 0, load(1, "/w/bank", 0x40_0000, 0x40_9000)));
        world.begin(&event(1, 2, 0, EventKind::ThreadName { name: "teller".into() }));
        let mut counts = Counts::default();
        let place = |module, offset| Place { module: ModuleId(module), offset };
        counts.add(ThreadId(1), place(1, 31), "read", 100_000);
        counts.add(ThreadId(1), place(1, 31), "write", 5);
        counts.add(ThreadId(2), place(1, 31), "read", 7);
        counts.add(ThreadId(2), place(1, 40), "lock-acquired", 3);
        counts.add(ThreadId(2), place(1, 40), "lock-released", 3);
        counts.add(ThreadId(2), place(0, 0x7f00), "atomic-update", 9);
        counts.add(ThreadId(2), place(1, 50), "free", 0);
        (counts, world)
    }

    #[test]
    fn as_text() {
        let (counts, mut world) = counted();
        let mut out = Vec::new();
        counts.write_text(&mut out, Paint::Plain, Path::new("/w"), &mut world, &mut Made).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
         reads  writes  atomics  locks  other  thread
        100000       5        0      0      0  T1
             7       0        9      3      3  T2 teller
        100007       5        9      3      3  all threads

         reads  writes  atomics  locks  other  hottest places
        100007       5        0      0      0  bank.c:31 in f31
             0       0        9      0      0  0x7f00
             0       0        0      3      3  bank.c:40 in f40
        ");
        assert_eq!(counts.total(), 100_027);
    }

    #[test]
    fn as_json() {
        let (counts, mut world) = counted();
        let json = counts.to_json(7, Path::new("/w"), &mut world, &mut Made);
        insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
        {
          "places": [
            {
              "events": {
                "read": 100007,
                "write": 5
              },
              "place": {
                "column": 5,
                "file": "/w/bank.c",
                "function": "f31",
                "inlined": false,
                "line": 31,
                "module": "/w/bank",
                "offset": "0x1f"
              }
            },
            {
              "events": {
                "atomic-update": 9
              },
              "place": {
                "offset": "0x7f00"
              }
            },
            {
              "events": {
                "lock-acquired": 3,
                "lock-released": 3
              },
              "place": {
                "column": 5,
                "file": "/w/bank.c",
                "function": "f40",
                "inlined": false,
                "line": 40,
                "module": "/w/bank",
                "offset": "0x28"
              }
            }
          ],
          "process": 7,
          "schema": "raddle-event-counts/1",
          "threads": [
            {
              "events": {
                "read": 100000,
                "write": 5
              },
              "name": null,
              "thread": 1
            },
            {
              "events": {
                "atomic-update": 9,
                "lock-acquired": 3,
                "lock-released": 3,
                "read": 7
              },
              "name": "teller",
              "thread": 2
            }
          ]
        }
        "#);
    }

    #[test]
    fn instructions_of_one_line_are_one_place() {
        /// All on one line.
        struct OneLine;
        impl Symbols for OneLine {
            fn frames(&mut self, _: &str, _: u64) -> Vec<crate::Frame> {
                let file = Some("a.c".to_owned());
                vec![crate::Frame { file, line: Some(1), ..crate::Frame::default() }]
            }
            fn variable(&mut self, _: &str, _: u64) -> Option<String> {
                None
            }
        }
        let (counts, mut world) = counted();
        let hottest = counts.hottest(Path::new("/w"), &mut world, &mut OneLine);
        let found: Vec<(String, u64)> =
            hottest.iter().map(|hot| (hot.name.text(Path::new("/w")), sum(&hot.tally))).collect();
        assert_eq!(found, [("a.c:1".into(), 100_018), ("0x7f00".into(), 9)]);
    }
}
