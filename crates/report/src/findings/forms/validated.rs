//! Each form against its published schema, for the same findings.

use super::{Repository, junit, sarif};
use crate::findings::schema::{
    Classification, Confirmation, Effect, Interleaving, Lane, Order, Rebuilt, Step, StepKind,
    Under, Values, Verdict,
};
use crate::findings::{Rate, Report, typed};
use raddle_model::ThreadId;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const REPORT_SCHEMA: &str = include_str!("../../../../../docs/raddle-report-1.schema.json");
const SARIF_SCHEMA: &str = include_str!("../../../tests/schemas/sarif-2.1.0.json");

fn interleaving() -> Interleaving {
    let frame = typed::bank().findings[0].accesses[0].stack[0].clone();
    let lane = |thread| Lane { thread: ThreadId(thread), name: None };
    let values =
        Values { size: 4, writes: true, before: Some("0x0".into()), after: Some("0x1".into()) };
    let race = |lane| Step {
        lane,
        kind: StepKind::Race,
        what: "write <4> bytes".into(),
        at: Some(frame.clone()),
        holds: vec!["m&m".into()],
        values: Some(values.clone()),
    };
    Interleaving { lanes: vec![lane(2), lane(3)], steps: vec![race(1), race(0), Step::default()] }
}

/// The bank, with what later stages add and names that need escaping.
fn bank() -> Report {
    let mut report = typed::bank();
    let finding = &mut report.findings[0];
    finding.confirmation = Some(Confirmation {
        confirmed: true,
        seed: Some("18446744073709551615".into()),
        policy: Some("random".into()),
        trials: 3,
        hits: 2,
        interval: Rate { hits: 2, trials: 3 }.interval(),
        effects: vec![Effect {
            order: 1,
            effect: "exit code 1".into(),
            count: 1,
            ..Effect::default()
        }],
        orders: vec![Order {
            order: 2,
            seed: "7".into(),
            kept: "R1.2".into(),
            end: serde_json::json!({"exit": 1}),
            accesses: Value::Null,
            interleaving: Some(interleaving()),
        }],
        under: vec![Under {
            policy: "pct of depth 3".into(),
            trials: 20,
            interval: Rate { hits: 0, trials: 20 }.interval(),
            ..Under::default()
        }],
        rebuilt: Some(Rebuilt { found: true, reported: false, fixed: false }),
        ..Confirmation::default()
    });
    finding.classification =
        Some(Classification { verdict: Verdict::OutputDiffers, evidence: vec!["8 | 9".into()] });
    report.findings[1].location.name = Some("<script>\"&'\u{1}\u{fffe}".into());
    report.threads[2].name = Some("a]]>b".into());
    report.summary.warnings.push("5 < 6".into());
    report
}

/// What a schema has against a value.
fn errors(schema: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(value).map(|e| format!("{e} at {}", e.instance_path)).collect()
}

#[test]
fn report_json_is_as_documented() {
    let mut hunted = typed::failing();
    let spent =
        serde_json::json!({"detections": 3, "trials": 0, "explored": 49, "effect": "deadlock"});
    hunted.more.insert("hunt".into(), spent);
    for report in [typed::bank(), bank(), typed::cycle(), typed::deadlocked(), hunted] {
        let value: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(errors(REPORT_SCHEMA, &value), Vec::<String>::new());
    }
}

#[test]
fn the_documented_schema_refuses_what_is_no_report() {
    let value = || -> Value { serde_json::from_str(&bank().to_json()).unwrap() };
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut changed = value();
        change(&mut changed);
        !errors(REPORT_SCHEMA, &changed).is_empty()
    };
    assert!(refused(&|v| v["schema"] = "raddle-report/2".into()));
    assert!(refused(&|v| v["findings"][0]["certainty"] = "sure".into()));
    assert!(refused(&|v| v["findings"][0]["accesses"][0]["stack"][0]["offset"] = 16.into()));
    assert!(refused(&|v| {
        v["findings"][0].as_object_mut().unwrap().remove("fingerprint");
    }));
    assert!(refused(&|v| v["findings"][0]["confirmation"]["seed"] = 7.into()));
    let failing = |change: &dyn Fn(&mut Value)| {
        let mut changed: Value = serde_json::from_str(&typed::failing().to_json()).unwrap();
        change(&mut changed["failures"][0]);
        !errors(REPORT_SCHEMA, &changed).is_empty()
    };
    assert!(!failing(&|_| {}));
    assert!(failing(&|v| v["seed"] = 7.into()));
    assert!(failing(&|v| v["end"] = "tired".into()));
    assert!(failing(&|v| {
        v.as_object_mut().unwrap().remove("effect");
    }));
    assert!(!failing(&|v| v["something-new"] = 7.into()));
    // Additions never break readers.
    assert!(!refused(&|v| v["findings"][0]["something-new"] = 7.into()));
}

#[test]
fn sarif_is_as_published() {
    for report in [typed::bank(), bank(), typed::cycle(), typed::failing()] {
        let log = sarif::log(&report, typed::repository());
        assert_eq!(errors(SARIF_SCHEMA, &log), Vec::<String>::new());
    }
    let mut wrong = sarif::log(&bank(), typed::repository());
    wrong["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!errors(SARIF_SCHEMA, &wrong).is_empty());
}

#[test]
fn sarif_has_what_code_scanning_needs() {
    let log = sarif::log(&bank(), typed::repository());
    let run = &log["runs"][0];
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], run["tool"]["driver"]["rules"][0]["id"]);
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "bank.c");
    assert_eq!(
        (&location["region"]["startLine"], &location["region"]["startColumn"]),
        (&16.into(), &13.into())
    );
    let related: Vec<&Value> = result["relatedLocations"].as_array().unwrap().iter().collect();
    assert_eq!(related.len(), 2);
    assert_eq!(
        related[0]["message"]["text"],
        "read of 4 bytes by T2, holding m (taken at bank.c:32 in reader)"
    );
    let flows = result["codeFlows"][0]["threadFlows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    assert_eq!(result["partialFingerprints"]["raddle/v1"], bank().findings[0].fingerprint.as_str());
    // Outside the repository, with nothing but a module.
    let outside = &run["results"][2]["locations"][0]["physicalLocation"];
    assert_eq!(outside["artifactLocation"]["uri"], "file:///lib/libc.so.6");
    assert_eq!(outside["region"], serde_json::json!({ "startLine": 1 }));
    let elsewhere =
        sarif::log(&bank(), Repository { root: Path::new("/repo"), ..typed::repository() });
    let uri = &elsewhere["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        ["uri"];
    assert_eq!(uri, "file:///w/bank.c");
}

#[test]
fn sarif_leads_to_both_accesses_and_to_where_threads_stood() {
    let log = sarif::log(&typed::failing(), typed::repository());
    let results = log["runs"][0]["results"].as_array().unwrap();
    let text = |at: usize| results[at]["message"]["text"].as_str().unwrap();
    assert!(text(1).ends_with("repeats it; stood at [bank.c:20 in reader](1)"), "{}", text(1));
    insta::assert_snapshot!(text(2), @"data race on counter (observed, seen 12 times): write of 4 bytes by T3 'worker', holding no locks, at [bank.c:16 in worker](2); read of 4 bytes by T2, holding m (taken at bank.c:32 in reader), at [bank.c:20 in reader](1)");
    for result in &results[1..] {
        let related = result["relatedLocations"].as_array().unwrap();
        assert!(!related.is_empty());
        for location in related {
            let link = format!("]({})", location["id"]);
            assert!(result["message"]["text"].as_str().unwrap().contains(&link), "{result}");
        }
    }
}

#[test]
fn only_what_is_in_the_repository_is_said_to_be() {
    let mut report = typed::failing();
    let stack = &mut report.failures[1].stacks[0];
    let own = stack[0].clone();
    let glibc = crate::findings::Frame {
        module: Some("/lib/libc.so.6".into()),
        file: Some("./nptl/pthread_kill.c".into()),
        line: Some(44),
        ..own.clone()
    };
    *stack = vec![glibc.clone(), own];
    report.failures[0].stacks = vec![vec![glibc]];
    let log = sarif::log(&report, typed::repository());
    let results = &log["runs"][0]["results"];
    let at = |result: usize| &results[result]["locations"][0]["physicalLocation"];
    // No frame is the program's own: its file is all there is.
    assert_eq!(at(0)["artifactLocation"]["uri"], "bank");
    assert_eq!(at(0)["region"]["startLine"], 1);
    assert_eq!(at(1)["artifactLocation"]["uri"], "bank.c");
    let frame = &results[1]["stacks"][0]["frames"][0]["location"]["physicalLocation"];
    assert_eq!(frame["artifactLocation"], serde_json::json!({ "uri": "nptl/pthread_kill.c" }));
    // What lies below the root, but is not there.
    report.findings[0].accesses[1].stack[0].file = Some("/w/gone.c".into());
    let log = sarif::log(&report, typed::repository());
    let gone = &log["runs"][0]["results"][2]["locations"][0]["physicalLocation"];
    assert_eq!(gone["artifactLocation"], serde_json::json!({ "uri": "file:///w/gone.c" }));
    // On another machine nobody can look.
    let elsewhere = Repository { has: &|_| false, ..typed::repository() };
    let log = sarif::log(&typed::bank(), elsewhere);
    let known = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(known["artifactLocation"]["uriBaseId"], "SRCROOT");
}

#[test]
fn sarif_has_a_rule_for_each_kind_of_failure() {
    let mut report = typed::failing();
    report.failures[1].stacks.clear();
    let log = sarif::log(&report, typed::repository());
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let names: Vec<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
    assert_eq!(names, ["data-race", "deadlock", "failing-execution"]);
    assert!(rules.iter().all(|rule| rule["help"]["text"].as_str().unwrap().len() > 100));
    let results = run["results"].as_array().unwrap();
    let ids: Vec<&str> = results.iter().filter_map(|r| r["properties"]["id"].as_str()).collect();
    assert_eq!(ids, ["H1", "H2", "R1", "R2", "R3"]);
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(result["ruleId"], rule["id"]);
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&results[..2]).unwrap(), @r##"
    [
      {
        "level": "error",
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "bank",
                "uriBaseId": "SRCROOT"
              },
              "region": {
                "startLine": 1
              }
            }
          }
        ],
        "message": {
          "text": "killed by signal 11 in 7 of 49 executions (random, seed 12); `raddle replay H1` repeats it"
        },
        "occurrenceCount": 7,
        "partialFingerprints": {
          "raddle/v1": "8450f0054bdfe54a"
        },
        "properties": {
          "id": "H1",
          "policy": "random",
          "seed": "12"
        },
        "relatedLocations": [],
        "ruleId": "failing-execution",
        "ruleIndex": 2
      },
      {
        "level": "error",
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "bank",
                "uriBaseId": "SRCROOT"
              },
              "region": {
                "startLine": 1
              }
            }
          }
        ],
        "message": {
          "text": "deadlock in 1 of 49 executions (lock-directed, seed 18446744073709551615); these threads wait for each other's locks; T2 waits for 0x4068, and holds 0x4040; T3 waits for 0x4040, and holds 0x4068; `raddle replay H2` repeats it"
        },
        "occurrenceCount": 1,
        "partialFingerprints": {
          "raddle/v1": "ee90ca001375681b"
        },
        "properties": {
          "id": "H2",
          "policy": "lock-directed",
          "seed": "18446744073709551615"
        },
        "relatedLocations": [],
        "ruleId": "deadlock",
        "ruleIndex": 1
      }
    ]
    "##);
    let known = sarif::log(&typed::failing(), typed::repository());
    let location = &known["runs"][0]["results"][1]["locations"][0]["physicalLocation"];
    assert_eq!(location["region"]["startLine"], 20);
}

#[test]
fn junit_is_as_published() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas/junit.xsd");
    let clean = Report { findings: Vec::new(), ..typed::bank() };
    let mut failed = bank();
    failed.outcome.failure = Some("the probe gave up".into());
    let hunted = typed::failing();
    for (report, failures, tests) in [(bank(), 3, 3), (clean, 0, 1), (failed, 3, 4), (hunted, 5, 5)]
    {
        let document = junit::document(&report, "2026-01-31T12:00:00");
        let xml = roxmltree::Document::parse(&document).unwrap();
        let suite = xml.root_element().first_element_child().unwrap();
        assert_eq!(suite.attribute("failures"), Some(failures.to_string().as_str()));
        let cases = suite.children().filter(|child| child.has_tag_name("testcase"));
        assert_eq!(cases.count(), tests);
        if let Some(said) = xmllint(&schema, &document) {
            assert_eq!(said, "- validates\n", "{document}");
        }
        if let Some(said) = xmllint(&schema, &document.replace(" hostname=\"localhost\"", "")) {
            assert_ne!(said, "- validates\n");
        }
    }
}

/// What xmllint says; none where there is none.
fn xmllint(schema: &Path, document: &str) -> Option<String> {
    use std::io::Write;
    let mut command = Command::new("xmllint");
    command.args(["--noout", "--nonet", "--schema"]).arg(schema).arg("-");
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: there is no xmllint");
        return None;
    };
    child.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}
