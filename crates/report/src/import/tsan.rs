//! ThreadSanitizer's text, of gcc and clang:
//!
//! ```text
//! WARNING: ThreadSanitizer: data race (pid=1)
//!   Write of size 4 at 0x55 by thread T2 (mutexes: write M1):
//!     #0 worker /w/race.c:6 (race+0x11f4)
//!   Previous atomic read of size 4 at 0x55 by main thread:
//!     #0 main /w/race.c:9:5 (race+0x1200) (BuildId: 0f)
//!   Location is global 'counter' of size 4 at 0x55 (race+0x405c)
//! ```

use super::{Candidate, Place, Side, Tool, between, number_after};

pub fn parse(text: &str) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !(line.contains("WARNING: ThreadSanitizer: data race")
            || line.contains("WARNING: ThreadSanitizer: heap-use-after-free"))
        {
            continue;
        }
        let mut sides: Vec<Side> = Vec::new();
        let mut variable = None;
        // Behind the accesses come stacks of other things: locations, threads, mutexes.
        let mut is_access = false;
        while let Some(line) = lines.next_if(|line| !line.contains("SUMMARY: ThreadSanitizer")) {
            if line.starts_with("====") {
                break;
            }
            if let Some(frame) = frame(line) {
                if let Some(side) = sides.last_mut().filter(|_| is_access && !is_tools(&frame)) {
                    side.stack.push(frame);
                }
                continue;
            }
            let side = access(line);
            is_access = match line.trim().is_empty() {
                true => false,
                false => side.is_some(),
            };
            sides.extend(side);
            if line.contains("Location is global") {
                variable = between(line, "'", "'").map(String::from);
            }
        }
        let mut sides = sides.into_iter().filter(|side| !side.stack.is_empty());
        if let Some(access) = sides.next() {
            let tool = Tool::ThreadSanitizer;
            candidates.push(Candidate { tool, access, other: sides.next(), variable });
        }
    }
    candidates
}

/// `  Previous atomic write of size 4 at 0x… by thread T1:`
fn access(line: &str) -> Option<Side> {
    let lower = line.trim().to_ascii_lowercase();
    let words = lower.strip_prefix("previous ").unwrap_or(&lower);
    let (atomic, words) = match words.strip_prefix("atomic ") {
        Some(rest) => (true, rest),
        None => (false, words),
    };
    let writes = match words.split(' ').next()? {
        "read" => false,
        "write" => true,
        _ => return None,
    };
    let size = Some(number_after(words, " of size ")?);
    Some(Side { writes, atomic, size, stack: Vec::new() })
}

/// `    #0 worker(int) /w/race.c:6:5 (race+0x11f4) (BuildId: 0f)`
fn frame(line: &str) -> Option<Place> {
    let rest = line.trim_start().strip_prefix('#')?;
    let (number, rest) = rest.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let rest = rest.split(" (BuildId:").next()?.trim_end();
    let (rest, module) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((rest, inside)) if inside.contains("+0x") => (rest, Some(inside)),
        _ => (rest, None),
    };
    let (module, offset) = match module.and_then(|module| module.rsplit_once("+0x")) {
        Some((module, offset)) => (Some(module.to_owned()), u64::from_str_radix(offset, 16).ok()),
        None => (None, None),
    };
    // The source is the last word; names of functions have blanks in them, paths rarely do.
    let (function, source) = match rest.rsplit_once(' ') {
        Some((function, source)) => (function, source),
        None => (rest, ""),
    };
    let (file, line) = place(source);
    let known = |text: &str| (!text.is_empty() && text != "<null>").then(|| text.to_owned());
    Some(Place { function: known(function), file: known(file), line, module, offset })
}

/// Is it a function of the tool's, which stands in for one of the C library? The program's call of
/// it is what matters.
fn is_tools(place: &Place) -> bool {
    let library = |name: &String| name.starts_with("libtsan") || name.contains("clang_rt.tsan");
    let source = |file: &String| file.contains("/libsanitizer/") || file.contains("/compiler-rt/");
    place.module.as_ref().is_some_and(library) || place.file.as_ref().is_some_and(source)
}

/// `/w/race.c:6`, `/w/race.c:6:5`.
fn place(source: &str) -> (&str, Option<u32>) {
    let Some((front, last)) = source.rsplit_once(':') else { return (source, None) };
    let Ok(last) = last.parse::<u32>() else { return (source, None) };
    match front.rsplit_once(':').map(|(file, line)| (file, line.parse::<u32>())) {
        Some((file, Ok(line))) => (file, Some(line)),
        _ => (front, Some(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_tool_are_left_out() {
        let text = "WARNING: ThreadSanitizer: data race (pid=1)
  Write of size 8 at 0x55 by thread T2:
    #0 memcpy ../../src/libsanitizer/tsan/interceptors.inc:115 (libtsan.so.2+0x5e686)
    #1 fill /w/race.c:6 (race+0x11f4)

  Previous read of size 8 at 0x55 by main thread:
    #0 main /w/race.c:9 (race+0x1200)
";
        let candidates = parse(text);
        let stack = &candidates[0].access.stack;
        assert_eq!((stack.len(), stack[0].function.as_deref()), (1, Some("fill")));
    }

    #[test]
    fn frames_of_every_form() {
        let full = frame("    #1 ns::f(int, char*) /w/a.cc:6:5 (prog+0x1f) (BuildId: 0f)").unwrap();
        assert_eq!(full.function.as_deref(), Some("ns::f(int, char*)"));
        assert_eq!((full.file.as_deref(), full.line), (Some("/w/a.cc"), Some(6)));
        assert_eq!((full.module.as_deref(), full.offset), (Some("prog"), Some(0x1f)));
        let stripped = frame("    #0 <null> <null> (libx.so.1+0x5e686)").unwrap();
        assert_eq!((stripped.function, stripped.file), (None, None));
        assert_eq!(stripped.offset, Some(0x5e686));
        assert_eq!(frame("  Location is global 'x' of size 4"), None);
    }
}
