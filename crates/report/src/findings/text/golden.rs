//! Whole reports, so that a change of wording is a reviewed difference.

use super::{Style, next, summary, write};
use crate::findings::fingerprint::fingerprint;
use crate::findings::{Classification, Confirmation, Effect, Finding, Verdict};
use crate::findings::{Filter, Outcome, Report, Selector, typed};
use crate::paint::Paint;
use std::path::Path;

fn style(everything: bool) -> Style {
    Style { everything, ..Style::plain("/w") }
}

fn text(report: &Report, style: &Style) -> String {
    let mut out = Vec::new();
    write(report, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The report without all findings but one.
fn only(id: &str) -> Report {
    let mut report = typed::bank();
    report.findings.retain(|finding| finding.id == id);
    report
}

#[test]
fn an_observed_race_on_a_variable() {
    insta::assert_snapshot!(text(&only("R1"), &style(false)), @r#"
    R1  data race on counter (observed, seen 12 times)

      (2) write of 4 bytes by T3 'worker', holding no locks
          bank.c:16 in worker
             16 |     counter += 1;
                |             ^^

      (1) earlier read of 4 bytes by T2, holding m (taken at bank.c:32 in reader)
          bank.c:20 in reader
             20 |     printf("%d\n", counter);
                |                    ^^^^^^^

      where: global variable counter of ./bank, 4 bytes at 0x555500004010
      T3 'worker' was created by T1 at bank.c:48 in main
      T2 was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           nothing that Raddle knows of ordered them in this run: observed
    "#);
}

#[test]
fn a_cycle_of_locks() {
    let report = typed::cycle();
    insta::assert_snapshot!(text(&report, &style(false)), @r#"
    R1  lock-order cycle of n and m (predicted, seen 3 times)

      (1) request for n by T2, holding m (taken at bank.c:32 in reader)
          bank.c:20 in reader
             20 |     printf("%d\n", counter);
                |                    ^^^^^^^

      (2) request for m by T3 'worker', holding n (shared side, taken at bank.c:32 in reader)
          bank.c:64 in fill
             64 |     memset(buffer, 0, 8);
                |     ^^^^^^
          called from bank.c:64 in fill

      T3 'worker' was created by T1 at bank.c:48 in main
      T2 was created by T1 at bank.c:48 in main
      why: each asks for what the next one holds, the last for what the first holds; no common lock and no order keeps them from being there at once: a deadlock, in another run
    "#);
    insta::assert_snapshot!(summary(&report, None), @"1 lock-order cycle (1 predicted) in 3 threads");
    insta::assert_snapshot!(super::news(&report.findings[0], Path::new("/w")), @"lock-order cycle of n and m (predicted): request for m at bank.c:64 in fill, request for n at bank.c:20 in reader");
    // The same cycle, begun at the other thread, is the same finding.
    let finding = &report.findings[0];
    let mut turned = finding.clone();
    turned.waits.reverse();
    assert_eq!(fingerprint(&turned), fingerprint(finding));
    turned.waits[0].wants.name = Some("other".into());
    assert_ne!(fingerprint(&turned), fingerprint(finding));
}

#[test]
fn a_predicted_race_on_the_heap() {
    insta::assert_snapshot!(text(&only("R2"), &style(false)), @r#"
    R2  data race on a heap block of 64 bytes from bank.c:56 in main (predicted, seen once)

      (2) free of 64 bytes by T1, holding no locks
          bank.c:48 in main
             48 |     pthread_create(&t, NULL, worker, NULL);
                |     ^^^^^^^^^^^^^^

      (1) earlier write of 8 bytes by T3 'worker', holding m (shared side) and n
          libc.so.6+0x20
          called from bank.c:64 in fill
             64 |     memset(buffer, 0, 8);
                |     ^^^^^^
          m was taken at bank.c:32 in reader
          n was taken at bank.c:32 in reader

      where: byte 8 of a heap block of 64 bytes, allocated by T1 at bank.c:56 in main
      T3 'worker' was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           only the order in which locks were taken kept them apart, and the next run may take them in another: predicted (lock-order-ignored)
           giving memory back counts as writing it (free-is-write)
    "#);
}

#[test]
fn whole_stacks_on_demand() {
    insta::assert_snapshot!(text(&only("R2"), &style(true)), @r#"
    R2  data race on a heap block of 64 bytes from bank.c:56 in main (predicted, seen once)

      (2) free of 64 bytes by T1, holding no locks
          bank.c:48 in main
             48 |     pthread_create(&t, NULL, worker, NULL);
                |     ^^^^^^^^^^^^^^
          called from start_thread (libc.so.6+0x90)

      (1) earlier write of 8 bytes by T3 'worker', holding m (shared side) and n
          libc.so.6+0x20
          called from bank.c:64 in fill
             64 |     memset(buffer, 0, 8);
                |     ^^^^^^
          called from start_thread (libc.so.6+0x90)
          m was taken at bank.c:32 in reader
          n was taken at bank.c:32 in reader

      where: byte 8 of a heap block of 64 bytes, allocated by T1 at bank.c:56 in main
          called from start_thread (libc.so.6+0x90)
      T3 'worker' was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           only the order in which locks were taken kept them apart, and the next run may take them in another: predicted (lock-order-ignored)
           giving memory back counts as writing it (free-is-write)
    "#);
}

#[test]
fn a_race_of_a_library_with_itself() {
    insta::assert_snapshot!(text(&only("R3"), &style(false)), @r#"
    R3  data race on libc.so.6+0x4000 (observed, seen once)

      (2) write of 4 bytes by T3 'worker', holding no locks
          libc.so.6+0x30

      (1) earlier read of 4 bytes by T2, holding no locks
          libc.so.6+0x30

      where: 0x777700004000, which is /lib/libc.so.6+0x4000 and has no name
      T3 'worker' was created by T1 at bank.c:48 in main
      T2 was created by T1 at bank.c:48 in main
      why: neither access held a lock (no-common-lock)
           nothing that Raddle knows of ordered them in this run: observed
    "#);
}

#[test]
fn how_a_library_does_it_is_left_out() {
    let mut report = only("R2");
    let calls = report.findings[0].location.allocated_at.as_mut().unwrap();
    for function in ["std::vector<int>::vector", "std::allocator<int>::allocate"] {
        let mut frame = calls[0].clone();
        frame.file = Some("/usr/include/c++/14/bits/stl_vector.h".into());
        (frame.function, frame.inlined) = (Some(function.into()), true);
        calls.insert(0, frame);
    }
    let own = "allocated by T1 at bank.c:56 in main\n";
    assert!(text(&report, &style(false)).contains(own), "{}", text(&report, &style(false)));
    let all = text(&report, &style(true));
    assert!(all.contains("      inlined into bank.c:56 in main\n"), "{all}");
}

#[test]
fn long_stacks_are_cut() {
    let mut report = only("R1");
    let stack = &mut report.findings[0].accesses[1].stack;
    let caller = stack[0].clone();
    stack.splice(1..1, std::iter::repeat_n(caller, 20));
    let shown = text(&report, &style(false));
    assert!(shown.contains("and 10 more calls; --verbose shows them"), "{shown}");
    assert!(text(&report, &style(true)).matches("called from").count() > 20);
}

#[test]
fn summaries() {
    let report = typed::bank();
    insta::assert_snapshot!(summary(&report, Some(".raddle/4/report.json")), @r#"
    3 data races (2 observed, 1 predicted) in 3 threads; report in .raddle/4/report.json
    "#);
    let ignore = ["bank", "libc"].map(|text| Selector::new(text, Path::new("/w"), None)).to_vec();
    let mut clean = typed::report(&Filter { ignore, ..Filter::default() });
    insta::assert_snapshot!(summary(&clean, None), @r#"
    no data races in 3 threads; looked at 1234 accesses, 8 synchronisations and 2 locks; without symbols: libc.so.6; 3 left out by --only-in or --ignore
    "#);
    clean.summary.hidden = 0;
    clean.summary.processes = 2;
    (clean.summary.accesses, clean.summary.without_symbols) = (None, Vec::new());
    clean.outcome = Outcome { timed_out: true, ..Outcome::default() };
    insta::assert_snapshot!(summary(&clean, None), @r#"
    no data races in 3 threads of 2 processes; the target was killed by --timeout
    "#);
}

#[test]
fn colour_is_for_terminals_and_the_target_s_words_are_not_obeyed() {
    let mut report = only("R1");
    report.threads[2].name = Some("evil\x1b[2J".into());
    assert!(!text(&report, &style(true)).contains('\x1b'));
    let colour = Style { paint: Paint::Colour, ..style(false) };
    let shown = text(&report, &colour);
    assert!(shown.contains("\x1b[1;31m") && !shown.contains("\x1b[2J"), "{shown:?}");
    assert!(shown.contains("evil\\u{1b}[2J"), "{shown:?}");
}

fn at_width(report: &Report, width: usize) -> String {
    text(report, &Style { width: Some(width), ..style(false) })
}

#[test]
fn on_a_narrow_screen_lines_wrap() {
    let shown = at_width(&only("R1"), 60);
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    insta::assert_snapshot!(shown, @r#"
    R1  data race on counter (observed, seen 12 times)

      (2) write of 4 bytes by T3 'worker', holding no locks
          bank.c:16 in worker
             16 |     counter += 1;
                |             ^^

      (1) earlier read of 4 bytes by T2, holding m (taken at
          bank.c:32 in reader)
          bank.c:20 in reader
             20 |     printf("%d\n", counter);
                |                    ^^^^^^^

      where: global variable counter of ./bank, 4 bytes at
             0x555500004010
      T3 'worker' was created by T1 at bank.c:48 in main
      T2 was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           nothing that Raddle knows of ordered them in this
           run: observed
    "#);
}

#[test]
fn eighty_columns_show_one_access_below_the_other() {
    let shown = at_width(&only("R2"), 80);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    insta::assert_snapshot!(shown, @r#"
    R2  data race on a heap block of 64 bytes from bank.c:56 in main (predicted,
        seen once)

      (2) free of 64 bytes by T1, holding no locks
          bank.c:48 in main
             48 |     pthread_create(&t, NULL, worker, NULL);
                |     ^^^^^^^^^^^^^^

      (1) earlier write of 8 bytes by T3 'worker', holding m (shared side) and n
          libc.so.6+0x20
          called from bank.c:64 in fill
             64 |     memset(buffer, 0, 8);
                |     ^^^^^^
          m was taken at bank.c:32 in reader
          n was taken at bank.c:32 in reader

      where: byte 8 of a heap block of 64 bytes, allocated by T1 at bank.c:56 in
             main
      T3 'worker' was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           only the order in which locks were taken kept them apart, and the next
           run may take them in another: predicted (lock-order-ignored)
           giving memory back counts as writing it (free-is-write)
    "#);
}

#[test]
fn a_wide_screen_shows_them_side_by_side() {
    let shown = at_width(&only("R1"), 120);
    assert!(shown.lines().all(|line| line.chars().count() <= 120), "{shown}");
    insta::assert_snapshot!(shown, @r#"
    R1  data race on counter (observed, seen 12 times)

      (1) earlier read of 4 bytes by T2, holding m (taken at   │   (2) write of 4 bytes by T3 'worker', holding no locks
          bank.c:32 in reader)                                 │       bank.c:16 in worker
          bank.c:20 in reader                                  │          16 |     counter += 1;
             20 |     printf("%d\n", counter);                 │             |             ^^
                |                    ^^^^^^^                   │

      where: global variable counter of ./bank, 4 bytes at 0x555500004010
      T3 'worker' was created by T1 at bank.c:48 in main
      T2 was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           nothing that Raddle knows of ordered them in this run: observed
    "#);
    let shown = at_width(&only("R2"), 160);
    insta::assert_snapshot!(shown, @r#"
    R2  data race on a heap block of 64 bytes from bank.c:56 in main (predicted, seen once)

      (1) earlier write of 8 bytes by T3 'worker', holding m (shared side) and n   │   (2) free of 64 bytes by T1, holding no locks
          libc.so.6+0x20                                                           │       bank.c:48 in main
          called from bank.c:64 in fill                                            │          48 |     pthread_create(&t, NULL, worker, NULL);
             64 |     memset(buffer, 0, 8);                                        │             |     ^^^^^^^^^^^^^^
                |     ^^^^^^                                                       │
          m was taken at bank.c:32 in reader                                       │
          n was taken at bank.c:32 in reader                                       │

      where: byte 8 of a heap block of 64 bytes, allocated by T1 at bank.c:56 in main
      T3 'worker' was created by T1 at bank.c:48 in main
      why: no lock was held by both (no-common-lock)
           only the order in which locks were taken kept them apart, and the next run may take them in another: predicted (lock-order-ignored)
           giving memory back counts as writing it (free-is-write)
    "#);
}

#[test]
fn an_access_far_right_is_underlined_at_any_width() {
    let mut report = only("R1");
    for access in &mut report.findings[0].accesses {
        let line = "                shelf.at(i % 3).sold += who; revenue[who].of(the_day) += shelf.at(i % 3).price;";
        let frame = &mut access.stack[0];
        frame.column = Some(line.find("price").unwrap() as u32 + 1);
        frame.text = Some(line.into());
    }
    for width in [60, 80, 107, 120, 160] {
        let shown = at_width(&report, width);
        assert!(shown.lines().all(|line| line.chars().count() <= width), "{shown}");
        assert_eq!(shown.matches("^^^^^").count(), 2, "{width}: {shown}");
        assert_eq!(shown.matches(".price").count(), 2, "{width}: {shown}");
    }
    // In a file nothing is cut.
    assert!(!text(&report, &style(false)).contains('…'));
    let narrow = at_width(&report, 60);
    let source = narrow.lines().skip(4).take(2).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(source, @r"
    16 | …ue[who].of(the_day) += shelf.at(i % 3).price;
       |                                         ^^^^^
    ");
}

#[test]
fn a_low_screen_shows_the_first_and_a_line_of_each_other() {
    let mut report = typed::bank();
    let rows = |report: &Report, height| {
        text(report, &Style { width: Some(80), height: Some(height), ..style(false) })
    };
    let shown = rows(&report, 24);
    insta::assert_snapshot!(shown, @r#"
    R1  data race on counter (observed, seen 12 times)

      (2) write of 4 bytes by T3 'worker', holding no locks
          bank.c:16 in worker
             16 |     counter += 1;
                |             ^^

      (1) earlier read of 4 bytes by T2, holding m (taken at bank.c:32 in reader)
          bank.c:20 in reader
             20 |     printf("%d\n", counter);
                |                    ^^^^^^^

      where: global variable counter of ./bank, 4 bytes at 0x555500004010
      why: no lock was held by both (no-common-lock)
           nothing that Raddle knows of ordered them in this run: observed

    R2  race on a heap block of 64 bytes (predicted): free at bank.c:48, write at b…
    R3  race on libc.so.6+0x4000 (observed): write at libc.so.6+0x30, read at libc.…
    "#);
    assert_eq!(rows(&report, 200), at_width(&report, 80));
    let many = std::iter::repeat_n(report.findings[1].clone(), 40);
    report.findings.extend(many);
    let shown = rows(&report, 24);
    assert!(shown.ends_with("\nand 40 more findings; --verbose shows all\n\n"), "{shown}");
}

#[test]
fn whatever_is_found_fits_the_screen() {
    let mut worst = typed::bank();
    worst.findings.rotate_left(1);
    // Long stacks, a name that wraps, and all that later stages say.
    for access in &mut worst.findings[0].accesses {
        let caller = access.stack[0].clone();
        access.stack.splice(1..1, std::iter::repeat_n(caller, 20));
        access.stack[0].function = Some("core::ops::function::FnOnce::call_once::".repeat(3));
    }
    let effect =
        |effect: &str| Effect { order: 1, effect: effect.into(), count: 3, ..Effect::default() };
    worst.findings[0].confirmation = Some(Confirmation {
        confirmed: true,
        hits: 3,
        trials: 6,
        effects: ["a", "b", "c", "d", "e"].map(effect).to_vec(),
        ..Confirmation::default()
    });
    let reports = [typed::bank(), worst, only("R1"), only("R2"), typed::cycle(), typed::failing()];
    for report in reports {
        for (width, height) in [(80, 24), (132, 24), (160, 24), (80, 50)] {
            let (width, rows) = (Some(width), height);
            let shown = text(&report, &Style { width, height: Some(rows), ..style(false) });
            let last = format!("raddle: {}\n", summary(&report, Some(".raddle/1/report.json")));
            let last = last.chars().count().div_ceil(width.unwrap()) + 2; // next, and the prompt
            assert!(shown.lines().count() + last <= rows, "{width:?}x{rows}:\n{shown}");
        }
    }
}

#[test]
fn what_a_low_screen_leaves_out_is_said() {
    let shown = |height| {
        text(&only("R2"), &Style { width: Some(80), height: Some(height), ..style(false) })
    };
    insta::assert_snapshot!(shown(24), @r#"
    R2  data race on a heap block of 64 bytes from bank.c:56 in main (predicted,
        seen once)

      (2) free of 64 bytes by T1, holding no locks
          bank.c:48 in main
             48 |     pthread_create(&t, NULL, worker, NULL);
                |     ^^^^^^^^^^^^^^

      (1) earlier write of 8 bytes by T3 'worker', holding m (shared side) and n
          libc.so.6+0x20
          called from bank.c:64 in fill
             64 |     memset(buffer, 0, 8);
                |     ^^^^^^

      where: byte 8 of a heap block of 64 bytes, allocated by T1 at bank.c:56 in ma…
      why: no lock was held by both (no-common-lock)

    cut to fit the screen; --verbose shows all
    "#);
}

#[test]
fn what_later_stages_learnt_is_said_and_leads() {
    let mut report = typed::bank();
    let predicted = &mut report.findings[1];
    predicted.confirmation = Some(Confirmation {
        confirmed: true,
        seed: Some("7".into()),
        trials: 100,
        hits: 47,
        effects: vec![Effect {
            order: 1,
            effect: "the target died of signal 11".into(),
            count: 1,
            ..Effect::default()
        }],
        ..Confirmation::default()
    });
    let verdict = Verdict::SpecViolated;
    let evidence = vec!["free before write: signal 11; write before free: exit 0".into()];
    predicted.classification = Some(Classification { verdict, evidence });
    report.findings.sort_by_key(Finding::importance);
    let ids: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(ids, ["R2", "R1", "R3"]);
    let shown = text(&report, &style(false));
    let first = "R2  data race on a heap block of 64 bytes from bank.c:56 in main (confirmed, seen \
                 once, harmful: one order breaks the program)\n";
    assert!(shown.starts_with(first), "{shown}");
    let said = "  made: happened in 47 of 100 (38-57 %) executions; seed 7\n  does: the target died of \
                signal 11, with (1) the write first, once\n  shown: free before write: signal 11; write before free: exit 0\n";
    assert!(shown.contains(said), "{shown}");
    let known = |words: &'static [&'static str]| move |word: &str| words.contains(&word);
    assert_eq!(next(&report, None, known(&["replay"])).unwrap(), "next: raddle replay R2");
    assert_eq!(next(&report, Some("4"), known(&[])).unwrap(), "next: raddle explain 4/R2");
    report.findings.remove(0);
    assert_eq!(next(&report, None, known(&["confirm"])).unwrap(), "next: raddle confirm R1");
    report.findings.clear();
    assert_eq!(next(&report, None, known(&["replay"])), None);
}

#[test]
fn failing_executions() {
    let mut report = typed::failing();
    insta::assert_snapshot!(summary(&report, None), @r##"
    2 failing executions and 3 data races (2 observed, 1 predicted) in 3 threads
    "##);
    assert_eq!(next(&report, None, |_| true).unwrap(), "next: raddle replay H1");
    assert_eq!(next(&report, Some("4"), |_| true).unwrap(), "next: raddle replay 4/H1");
    let low = Style { width: Some(60), height: Some(12), ..style(false) };
    insta::assert_snapshot!(text(&report, &low), @r##"
    H1  killed by signal 11 in 7 of 49 executions (random, seed
        12)

      again: raddle replay H1

    H2  deadlock in 1 of 49 executions (lock-directed, seed 184…
    and 3 more findings; --verbose shows all
    "##);
    report.findings.clear();
    report.summary.findings = 0;
    insta::assert_snapshot!(text(&report, &style(false)), @r##"
    H1  killed by signal 11 in 7 of 49 executions (random, seed 12)

      again: raddle replay H1

    H2  deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615)

      these threads wait for each other's locks
        T2 waits for 0x4068, and holds 0x4040
        T3 waits for 0x4040, and holds 0x4068
          at bank.c:20 in reader
          called from start_thread (libc.so.6+0x90)
      again: raddle replay H2
    "##);
    report.failures.truncate(1);
    insta::assert_snapshot!(summary(&report, Some(".raddle/4/report.json")), @r##"
    1 failing execution and no data races in 3 threads; report in .raddle/4/report.json
    "##);
    let mut report = typed::failing();
    report.findings.extend(typed::cycle().findings);
    insta::assert_snapshot!(summary(&report, None), @r##"
    2 failing executions, 3 data races and 1 lock-order cycle (2 observed, 2 predicted) in 3 threads
    "##);
    report.failures.truncate(1);
    report.failures[0].effect = "evil\x1b[2J".into();
    assert!(!text(&report, &style(false)).contains('\x1b'));
}
