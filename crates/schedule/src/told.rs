//! What the kernel says of a process and the machine, as text, and what is said instead so that it is the same in every
//! execution.

use std::fmt::{self, Write};
use std::ops::Range;

/// Processors a target sees: enough for it to use threads, and the same everywhere.
pub const PROCESSORS: usize = 2;
const SECOND: u64 = 1_000_000_000;
/// Clock ticks of the kernel's tables in a second.
const TICKS: u64 = 100;
const PAGE: u64 = 4096;

/// What a mapping of so many bytes takes: the kernel maps pages.
pub fn whole_pages(start: u64, length: u64) -> Range<u64> {
    start..start + length.next_multiple_of(PAGE)
}

/// What is left of a part of memory without another.
pub fn minus(part: Range<u64>, other: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let before = part.start..part.end.min(other.start);
    let after = part.start.max(other.end)..part.end;
    [before, after].into_iter().filter(|part| part.start < part.end)
}

/// A line of `/proc/self/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it is.
    pub bytes: Range<u64>,
    rights: String,
    /// Where in its file it begins.
    offset: u64,
    device: String,
    inode: String,
    /// Its file, or what the kernel calls it; empty for nothing but memory.
    pub name: String,
}

impl Line {
    /// A line as the kernel writes it.
    pub fn parse(line: &str) -> Option<Line> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Line {
            bytes: number(start)?..number(end)?,
            rights: fields.next()?.to_owned(),
            offset: number(fields.next()?)?,
            device: fields.next()?.to_owned(),
            inode: fields.next()?.to_owned(),
            name: fields.next().unwrap_or("").trim_start().to_owned(),
        })
    }

    /// May it be written?
    pub fn is_writable(&self) -> bool {
        self.rights.starts_with("rw")
    }

    /// May another process have it, too?
    pub fn is_shared(&self) -> bool {
        self.rights.ends_with('s')
    }

    /// Where in this mapping the word of the file is that stands at `address` in another one, if both have it.
    pub fn alias(&self, other: &Line, address: u64) -> Option<u64> {
        let offset = other.offset + address.checked_sub(other.bytes.start)?;
        let here = self.bytes.start + offset.checked_sub(self.offset)?;
        let same = (&self.device, &self.inode) == (&other.device, &other.inode);
        (same && self.bytes.contains(&here)).then_some(here)
    }

    /// The same of a part of it.
    pub fn part(&self, bytes: Range<u64>) -> Line {
        let is_file = self.inode != "0";
        let skipped = if is_file { bytes.start - self.bytes.start } else { 0 };
        Line { bytes, offset: self.offset + skipped, ..self.clone() }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { bytes, rights, offset, device, inode, name } = self;
        let (start, end) = (bytes.start, bytes.end);
        let line = format!("{start:08x}-{end:08x} {rights} {offset:08x} {device} {inode} ");
        match name.as_str() {
            "" => writeln!(f, "{line}"),
            name => writeln!(f, "{line:<73}{name}"),
        }
    }
}

/// What is said of the process and its threads.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The process, as it knows itself.
    pub process: u32,
    /// The thread that is asked about.
    pub thread: u32,
    /// How many there are.
    pub threads: usize,
    /// Nanoseconds of processor time.
    pub worked: u64,
    /// Nanoseconds from the start of the machine to its own.
    pub started: u64,
    /// Bytes mapped.
    pub size: u64,
}

/// proc(5): fields by number, from 1; the second is a name in brackets and may have spaces.
pub fn stat(real: &str, about: &About) -> String {
    let Some((before, after)) = real.rfind(')').map(|at| real.split_at(at + 1)) else {
        return real.to_owned();
    };
    let name = before.find('(').map_or("", |at| &before[at..]);
    let mut fields: Vec<String> = after.split_whitespace().map(str::to_owned).collect();
    let mut set = |field: usize, value: u64| {
        if let Some(place) = fields.get_mut(field - 3) {
            *place = value.to_string();
        }
    };
    set(4, u64::from(about.process) - 1);
    set(5, u64::from(about.process));
    set(6, u64::from(about.process));
    // Faults; times; the number of threads; when it started; memory; registers; signals that are pending; where it
    // waits; the processor; delays.
    (10..=17).for_each(|field| set(field, 0));
    set(14, about.worked / (SECOND / TICKS));
    set(20, about.threads as u64);
    set(22, about.started / (SECOND / TICKS));
    set(23, about.size);
    set(24, about.size / PAGE / 2);
    [29, 30, 31, 35, 36, 37, 39, 42, 43, 44].into_iter().for_each(|field| set(field, 0));
    format!("{} {name} R {}\n", about.thread, fields[1..].join(" "))
}

/// Of `/proc/self/status`: lines of a key and a value.
pub fn status(real: &str, about: &About) -> String {
    let mut told = String::new();
    let kilobytes = about.size / 1024;
    for line in real.lines() {
        let Some((key, _)) = line.split_once(':') else { continue };
        let value = match key {
            "State" => "R (running)".to_owned(),
            "Tgid" | "NStgid" | "NSpgid" | "NSsid" => about.process.to_string(),
            "Pid" | "NSpid" => about.thread.to_string(),
            "PPid" => (about.process - 1).to_string(),
            "Threads" => about.threads.to_string(),
            "VmPeak" | "VmSize" => format!("{kilobytes:8} kB"),
            "VmHWM" | "VmRSS" | "RssAnon" | "VmData" => format!("{:8} kB", kilobytes / 2),
            "VmStk" | "VmExe" | "VmLib" | "VmPTE" | "VmSwap" | "RssFile" | "RssShmem" => {
                format!("{:8} kB", 0)
            }
            "SigPnd" | "ShdPnd" => "0".repeat(16),
            "SigQ" => format!("0/{}", line.rsplit('/').next().unwrap_or("0")),
            "TracerPid" | "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                "0".to_owned()
            }
            "Cpus_allowed" => format!("{:x}", (1 << PROCESSORS) - 1),
            "Cpus_allowed_list" => format!("0-{}", PROCESSORS - 1),
            _ => {
                told.push_str(line);
                told.push('\n');
                continue;
            }
        };
        let _ = writeln!(told, "{key}:\t{value}");
    }
    told
}

/// The machine in numbers, started this many seconds after 1970.
pub fn machine_stat(start: u64) -> String {
    let mut told = "cpu  0 0 0 0 0 0 0 0 0 0\n".to_owned();
    for processor in 0..PROCESSORS {
        let _ = writeln!(told, "cpu{processor} 0 0 0 0 0 0 0 0 0 0");
    }
    let _ = write!(
        told,
        "intr 0\nctxt 0\nbtime {start}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n"
    );
    told
}

/// The first processor, as often as the target has processors.
pub fn processors(real: &str) -> String {
    let first = real.split("\n\n").next().unwrap_or("");
    let mut told = String::new();
    for processor in 0..PROCESSORS {
        for line in first.lines() {
            let key = line.split(':').next().unwrap_or("");
            let value = match key.trim() {
                "processor" | "core id" | "apicid" | "initial apicid" => processor.to_string(),
                "cpu MHz" => "1000.000".to_owned(),
                "bogomips" => "2000.00".to_owned(),
                "siblings" | "cpu cores" => PROCESSORS.to_string(),
                _ => {
                    told.push_str(line);
                    told.push('\n');
                    continue;
                }
            };
            let _ = writeln!(told, "{key}: {value}");
        }
        told.push('\n');
    }
    told
}

/// How much there is is the machine's; half of it is free, and nothing is used for anything.
pub fn memory(real: &str) -> String {
    let mut told = String::new();
    let number = |line: &str| -> u64 {
        line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    let named = |name: &str| real.lines().find(|line| line.starts_with(name)).map_or(0, number);
    for line in real.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let value = match key {
            "MemTotal" | "SwapTotal" | "CommitLimit" | "VmallocTotal" | "Hugepagesize"
            | "HugePages_Total" => number(line),
            "MemFree" | "MemAvailable" => named("MemTotal:") / 2,
            "SwapFree" => named("SwapTotal:"),
            _ => 0,
        };
        let unit = if rest.ends_with("kB") { " kB" } else { "" };
        let _ = writeln!(told, "{:<16}{value:>8}{unit}", format!("{key}:"));
    }
    told
}

/// Of version 4: random.
pub fn uuid(high: u64, low: u64) -> String {
    let high = high & !0xf000 | 0x4000;
    let low = low & !(3 << 62) | 1 << 63;
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}\n", low >> 48, low & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About {
        process: 4_194_305,
        thread: 4_194_306,
        threads: 3,
        worked: 2 * SECOND,
        started: 3 * SECOND,
        size: 8 * PAGE,
    };

    #[test]
    fn a_process_in_numbers() {
        let rest: Vec<String> = (4..=52).map(|field| format!("{field}00")).collect();
        let real = format!("77 (a (b) c) S {}\n", rest.join(" "));
        let told = stat(&real, &ABOUT);
        let (name, fields) = told.split_at(told.rfind(')').unwrap() + 1);
        assert_eq!(name, "4194306 (a (b) c)");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields[number - 3];
        assert_eq!([3, 4, 14, 20].map(field), ["R", "4194304", "200", "3"]);
        assert_eq!([22, 23, 24, 39].map(field), ["300", "32768", "4", "0"]);
        assert_eq!(
            [7, 9, 25, 32, 38, 52].map(field),
            ["700", "900", "2500", "3200", "3800", "5200"]
        );
    }

    #[test]
    fn a_process_in_words() {
        let real = "Name:\tx\nTgid:\t9\nPid:\t12\nVmRSS:\t  77 kB\nSigQ:\t5/900\nUid:\t0\t0\n";
        let told = "Name:\tx\nTgid:\t4194305\nPid:\t4194306\nVmRSS:\t      16 kB\nSigQ:\t0/900\nUid:\t0\t0\n";
        assert_eq!(status(real, &ABOUT), told);
    }

    #[test]
    fn processors_and_memory() {
        let one = "processor\t: 0\nmodel\t\t: 17\ncpu MHz\t\t: 3123.4\ncpu cores\t: 64";
        let told = processors(&format!("{one}\n\n{one}\n\n{one}\n\n"));
        assert_eq!(told.matches("model\t\t: 17\n").count(), PROCESSORS);
        assert!(
            told.contains("processor\t: 1\n") && !told.contains("3123") && !told.contains("64")
        );
        let told = memory("MemTotal:       1000 kB\nMemFree:  7 kB\nHugePages_Free:    3\n");
        let lines: Vec<Vec<&str>> =
            told.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["MemTotal:", "1000", "kB"]);
        assert_eq!(lines[1], ["MemFree:", "500", "kB"]);
        assert_eq!(lines[2], ["HugePages_Free:", "0"]);
    }

    #[test]
    fn lines_are_written_as_the_kernel_does() {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let again: Vec<String> =
            text.lines().map(|line| Line::parse(line).unwrap().to_string()).collect();
        assert_eq!(again.concat(), text);
    }

    #[test]
    fn rights_of_lines() {
        let rights = |line| Line::parse(line).map(|found| (found.is_writable(), found.is_shared()));
        assert_eq!(rights("7f00a000-7f00b000 rw-p 00000000 00:00 0 "), Some((true, false)));
        assert_eq!(rights("7f00a000-7f00b000 rwxp 00000000 00:00 0"), Some((true, false)));
        assert_eq!(rights("7f00a000-7f00b000 rw-s 0 00:01 7 /dev/shm/x"), Some((true, true)));
        assert_eq!(rights("7f00a000-7f00b000 r--p 0 08:01 7 /bin/true"), Some((false, false)));
        assert_eq!(rights(""), None);
    }

    #[test]
    fn one_word_in_two_mappings() {
        let [first, later, another] = [
            "1000-4000 rw-s 00002000 00:01 17  /memfd:words",
            "9000-a000 rw-s 00003000 00:01 17  /memfd:words",
            "c000-d000 rw-s 00003000 00:01 18  /memfd:words",
        ]
        .map(|line| Line::parse(line).unwrap());
        assert_eq!(first.alias(&later, 0x9010), Some(0x2010));
        assert_eq!(later.alias(&first, 0x2010), Some(0x9010));
        assert_eq!(later.alias(&first, 0x1010), None);
        assert_eq!(later.alias(&first, 0x3010), None);
        assert_eq!(another.alias(&later, 0x9010), None);
    }

    #[test]
    fn what_is_ours_is_cut_out_page_by_page() {
        let left =
            |ours| minus(10..20, &ours).map(|part| (part.start, part.end)).collect::<Vec<_>>();
        assert_eq!(left(12..15), [(10, 12), (15, 20)]);
        assert_eq!(left(5..12), [(12, 20)]);
        assert_eq!(left(15..30), [(10, 15)]);
        assert_eq!(left(5..30), []);
        assert_eq!(left(30..40), [(10, 20)]);
        assert_eq!(left(2..4), [(10, 20)]);
        assert_eq!(whole_pages(0x1000, 0x100008), 0x1000..0x102000);
        assert_eq!(whole_pages(0x1000, 0x1000), 0x1000..0x2000);
    }

    #[test]
    fn a_part_of_a_line_begins_later_in_its_file() {
        let whole = Line::parse("1000-4000 r--p 00002000 fe:00 17      /bin/a b").unwrap();
        assert_eq!(whole.name, "/bin/a b");
        let part = whole.part(0x2000..0x3000);
        assert!(part.to_string().starts_with("00002000-00003000 r--p 00003000 fe:00 17 "));
        let memory = Line::parse("1000-4000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!(
            memory.part(0x2000..0x3000).to_string(),
            "00002000-00003000 rw-p 00000000 00:00 0 \n"
        );
    }

    #[test]
    fn a_random_uuid_is_of_its_kind() {
        assert_eq!(uuid(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff\n");
        assert_eq!(uuid(0, 0), "00000000-0000-4000-8000-000000000000\n");
    }
}
