//! The page of the bank: what must be in it, and what must not. How it looks and works is tried in
//! a browser by the command's tests.

use super::{Sources, page};
use crate::findings::interleaving::{Interleaving, Lane, Step, StepKind, Timeline, Values};
use crate::findings::typed;
use crate::findings::{Confirmation, Effect, Frame, Order};
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
    let effect = Effect { order: 0, effect: evil.into(), count: 1 };
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
    let html = page(&report, &mut ());
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;&#39;&quot;"));
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
