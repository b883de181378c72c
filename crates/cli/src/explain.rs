//! `raddle explain`: what a finding, a kind of finding or a rule means, and what to do about it.

use crate::failure::Failure;
use crate::runs;
use crate::terminal;
use clap::Args;
use raddle_report::Report;
use raddle_report::explain::{self, Topic};
use raddle_report::findings::text::{self, Style};
use raddle_report::findings::{Entry, Finding};
use raddle_report::nearest::did_you_mean;
use std::fmt::Write;

/// Says in plain words what a finding, a kind of bug or a rule means, and how to fix it
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Explain {
    /// R1 or H1 of the latest run, 12/R1 of run 12, or a word of a report [default: list the words]
    what: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  The first finding of the latest run
      raddle explain R1

  What is a data race? What does `lock-order-ignored` mean?
      raddle explain data-race
      raddle explain lock-order-ignored";

impl Explain {
    /// Runs the subcommand.
    pub fn run(self) -> Result<u8, Failure> {
        let text = match self.what.as_deref() {
            None => list(),
            Some(what) if runs::names_a_finding(what) => finding(what)?,
            Some(what) if runs::names_a_failure(what) => failure(what)?,
            Some(what) => match explain::topic(&what.to_ascii_lowercase()) {
                Some(topic) => whole(topic),
                None => return Err(Failure::Other(unknown(what))),
            },
        };
        print!("{text}");
        Ok(0)
    }
}

fn list() -> String {
    let mut out = String::from("raddle explain WORD, or R1 for a finding of the latest run:\n\n");
    for topic in explain::topics() {
        let _ = writeln!(out, "  {:<20} {}", topic.name, topic.short);
    }
    out
}

fn whole(topic: &Topic) -> String {
    let mut out = format!("{}: {}\n\n{}\n", topic.name, topic.short, topic.long);
    if !topic.fix.is_empty() {
        let _ = write!(out, "\nWhat to do:\n{}\n", topic.fix);
    }
    out
}

fn finding(what: &str) -> Result<String, Failure> {
    let (_, report, at) = runs::find_finding(what)?;
    let finding: &Finding = &report.findings[at];
    let mut out = shown(&report, Entry::Finding(finding));
    if let Some(topic) = explain::kind(finding.kind) {
        out += &whole(topic);
    }
    let certainty = if finding.is_confirmed() {
        "confirmed".to_owned()
    } else {
        let value = serde_json::to_value(finding.certainty).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    };
    let topics = finding.rules.iter().filter_map(|rule| explain::rule(*rule));
    for topic in topics.chain(explain::topic(&certainty)) {
        let _ = write!(out, "\n{}", whole(topic));
    }
    Ok(out)
}

fn failure(what: &str) -> Result<String, Failure> {
    let (_, report, at) = runs::find_failure(what)?;
    let failure = &report.failures[at];
    let topic = explain::topic(failure.kind()).map(whole);
    Ok(shown(&report, Entry::Failure(failure)) + &topic.unwrap_or_default())
}

/// What the report says of it.
fn shown(report: &Report, entry: Entry<'_>) -> String {
    let stdout = std::io::stdout();
    let here = std::env::current_dir().unwrap_or_default();
    let style = terminal::style(&stdout, &here, false);
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = text::write(&report.only(entry), &Style { height: None, ..style }, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn unknown(what: &str) -> String {
    let near = did_you_mean(&what.to_ascii_lowercase(), explain::topics().map(|topic| topic.name));
    let near = if near.is_empty() { "; `raddle explain` lists the words".into() } else { near };
    format!("there is nothing called {what} in a report{near}")
}
