//! The page of the bank: what must be in it, and what must not. How it looks and works is tried in
//! a browser by the command's tests.

use super::{Sources, page};
use crate::findings::interleaving::{Interleaving, Lane, Step, StepKind, Timeline, Values};
use crate::findings::typed;
use crate::findings::{Confirmation, Effect, Failure, Frame, Order};
use raddle_model::ThreadId;
use std::path::Path;

/// Thirty lines of `/w/bank.c`, of which the report knows some.
struct Bank;

impl Sources for Bank {
    fn line(&mut self, file: &Path, line: u32) -> Option<String> {
        assert_eq!(file, Path::new("/w/bank.c"));
        match line {
            16 => Some("    counter += 1;".into()),
            1..=30 => Some(format!("// line {line} <of> the bank")),
            _ => None,
        }
    }
}

#[test]
fn both_sides_with_their_source() {
    let html = page(&typed::bank(), &mut Bank);
    assert!(html.contains("<span><i>   15</i> // line 15 &lt;of&gt; the bank</span>"), "{html}");
    // Two lines have no indentation in common.
    let here = "<span class=\"here\"><i>   16</i>     counter <mark>+=</mark> 1;</span>";
    assert!(html.contains(here), "{html}");
    // Line 20 is another one by now: only what the report remembers is shown.
    assert!(html.contains("<i>   21</i>") && !html.contains("<i>   22</i>"), "{html}");
    assert!(html.contains("printf(&quot;%d\\n&quot;, <mark>counter</mark>);"), "{html}");
    assert!(html.contains("holding m (taken at bank.c:32 in reader)"));
    assert!(html.contains("no lock was held by both (no-common-lock)"));
}

#[test]
fn one_file_and_no_network() {
    let html = page(&typed::bank(), &mut ());
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("<article").count(), 3);
    assert_eq!(html.matches("<article").count(), html.matches("</article>").count());
}

#[test]
fn what_the_target_says_is_text() {
    let mut report = typed::bank();
    let evil = "</script><img src=x onerror=alert(1)>'\"";
    report.threads[2].name = Some(evil.into());
    report.target.argv = vec![evil.into()];
    report.target.cwd = evil.into();
    report.summary.warnings.push(evil.into());
    let finding = &mut report.findings[0];
    finding.location.name = Some(evil.into());
    let step = Step {
        what: evil.into(),
        at: Some(Frame { text: Some(evil.into()), ..finding.accesses[0].stack[0].clone() }),
        holds: vec![evil.into()],
        values: Some(Values { before: Some(evil.into()), ..Values::default() }),
        ..Step::default()
    };
    let lane = Lane { thread: ThreadId(2), name: Some(evil.into()) };
    let interleaving = Interleaving { lanes: vec![lane.clone(), lane], steps: vec![step] };
    let order = Order { seed: evil.into(), interleaving: Some(interleaving), ..Order::default() };
    let effect = Effect { order: 0, effect: evil.into(), count: 1, ..Effect::default() };
    finding.confirmation = Some(Confirmation {
        orders: vec![order],
        effects: vec![effect],
        ..Confirmation::default()
    });
    for access in &mut finding.accesses {
        for frame in &mut access.stack {
            (frame.function, frame.file) = (Some(evil.into()), Some(evil.into()));
            frame.text = Some(evil.into());
        }
        for lock in &mut access.locks {
            lock.name = Some(evil.into());
        }
    }
    let (frame, evil) = (report.findings[0].accesses[0].stack[0].clone(), evil.to_owned());
    report.failures.push(Failure {
        id: evil.clone(),
        effect: evil.clone(),
        deadlock: Some(evil.clone()),
        policy: evil.clone(),
        seed: evil.clone(),
        stacks: vec![vec![frame.clone(), frame]],
        ..Failure::default()
    });
    let html = page(&report, &mut ());
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;&#39;&quot;"));
}

#[test]
fn a_failing_execution_has_a_card() {
    let html = page(&typed::failing(), &mut ());
    assert_eq!(html.matches("<article").count(), 5);
    let start = html.find("<article").unwrap();
    let end = html.find("<article id=\"R1\"").unwrap();
    insta::assert_snapshot!(&html[start..end], @r##"
    <article id="H1" tabindex="-1" data-standing="failed" data-kind="failing-execution" data-text="killed by signal 11 in 7 of 49 executions (random, seed 12)">
    <h2><a href="#H1">H1</a> killed by signal 11 in 7 of 49 executions (random, seed 12) <span class="badge failed">failed</span></h2>
    <dl><dt>what</dt><dd>Under some schedule the program ends otherwise than it does by itself.</dd>
    <dt>fix</dt><dd class="fix">- <code>raddle replay H1</code> repeats it as often as you like, and with <code>--gdb</code> lets gdb look at it.
    - <code>raddle replay H1 --events</code> shows how the threads synchronised on the way there.
    - When it is fixed, <code>raddle hunt</code> again: a replay of a program that was built anew proves nothing.</dd></dl>
    <p class="command"><code>raddle replay H1</code></p>
    </article>
    <article id="H2" tabindex="-1" data-standing="failed" data-kind="deadlock" data-text="deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615) these threads wait for each other&#39;s locks t2 waits for 0x4068, and holds 0x4040 t3 waits for 0x4040, and holds 0x4068 bank.c:20 in reader start_thread (libc.so.6+0x90)">
    <h2><a href="#H2">H2</a> deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615) <span class="badge failed">failed</span></h2>
    <pre class="waits">these threads wait for each other&#39;s locks
      T2 waits for 0x4068, and holds 0x4040
      T3 waits for 0x4040, and holds 0x4068</pre>
    <p class="place">bank.c:20 in reader</p>
    <pre class="source"><span class="here"><i>   20</i> printf(&quot;%d\n&quot;, <mark>counter</mark>);</span></pre>
    <details open><summary>calls</summary><ol class="stack" start="0">
    <li class="own">bank.c:20 in reader</li>
    <li class="runtime">start_thread (libc.so.6+0x90)</li>
    </ol></details>
    <dl><dt>what</dt><dd>Threads wait for each other in a circle.</dd>
    <dt>fix</dt><dd class="fix">- Take locks in one order everywhere, by rank or by address.
    - Or take them together (<code>std::scoped_lock</code>), or hold one at a time.
    - Where a signal was missed: test the condition under the lock, in a loop, before waiting for it.</dd></dl>
    <p class="command"><code>raddle replay H2</code></p>
    </article>
    "##);
    for part in [
        "<li data-for=\"H1\"><a href=\"#H1\"><b>H1</b> killed by signal 11 in 7 of 49 executions",
        "name=\"standing\" value=\"failed\" checked>",
        "name=\"kind\" value=\"failing-execution\" checked>",
        "name=\"kind\" value=\"deadlock\" checked>",
        "2 failing executions and 3 data races (2 observed, 1 predicted) in 3 threads",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn a_confirmed_cycle_has_a_timeline() {
    let html = page(&typed::deadlocked(), &mut ());
    for part in [
        "how they come to wait for each other (replayed, seed 7); time goes down</figcaption>",
        "<div class=\"lanes\" style=\"grid-template-columns:repeat(3,minmax(0,1fr))\">",
        "<div class=\"step wait holding\" style=\"grid-column:3;grid-row:2\"><b>asks for m</b>",
        "the last for what the first holds: nobody can go on</p>",
        "then: deadlock (2 times)",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!page(&typed::cycle(), &mut ()).contains("<figure"));
}

#[test]
fn a_timeline_has_a_lane_for_each_thread() {
    let report = typed::bank();
    let timeline = Timeline::of(&report.findings[0], &report).remove(0);
    assert_eq!(timeline.lanes, ["T2", "T3 'worker'"]);
    let steps: Vec<(usize, StepKind, &str)> =
        timeline.steps.iter().map(|step| (step.lane, step.kind, step.what.as_str())).collect();
    assert_eq!(
        steps,
        [
            (0, StepKind::Start, "starts, created by T1"),
            (1, StepKind::Start, "starts, created by T1"),
            (0, StepKind::Take, "takes m"),
            (0, StepKind::Race, "read of 4 bytes"),
            (1, StepKind::Race, "write of 4 bytes"),
        ]
    );
    assert_eq!(
        timeline.missing,
        "T2 holds m, T3 'worker' holds no lock: nothing makes one wait for the other"
    );
    assert!(timeline.caption.contains("not recorded: `raddle confirm R1`"), "{timeline:?}");
}
