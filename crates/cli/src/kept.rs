//! An execution that is kept in a run directory: `NAME.plan` says what was executed, `NAME.schedule`
//! what was decided, `NAME.input` what came from outside. Together they repeat it, whatever becomes of
//! the report beside them.

use crate::failure::Failure;
use crate::trial::Plan;
use raddle_schedule::{Schedule, parse_input};
use raddle_wire::options::PolicyChoice;
use std::path::{Path, PathBuf};

/// Leaves an execution in a directory: its plan, what was decided and what came from outside.
pub fn keep(
    directory: &Path,
    name: &str,
    plan: &Plan,
    (schedule, input): (&str, &str),
) -> Result<(), Failure> {
    let plan = serde_json::to_string_pretty(plan).map_err(Failure::during("writing a plan"))?;
    let files = [("schedule", schedule), ("input", input), ("plan", &plan)];
    for (ending, text) in files {
        let file = file(directory, name, ending);
        std::fs::write(&file, text)
            .map_err(Failure::during(format_args!("writing {}", file.display())))?;
    }
    Ok(())
}

/// The plan that repeats an execution.
pub fn load(directory: &Path, name: &str) -> Result<Plan, Failure> {
    let mut plan = plan(directory, name)?;
    // A damaged schedule gets its sentence here, and not in the target's process.
    schedule(directory, name)?;
    let schedule = file(directory, name, "schedule");
    let schedule = schedule.canonicalize().map_err(Failure::during(schedule.display()))?;
    let schedule = schedule.to_string_lossy().into_owned();
    plan.schedule.policy = PolicyChoice::Replay { file: schedule, input: input(directory, name)? };
    Ok(plan)
}

/// What was executed, under its own policy and seed: that policy decides anew.
pub fn plan(directory: &Path, name: &str) -> Result<Plan, Failure> {
    let (stored, text) = read(directory, name, "plan")?;
    serde_json::from_str(&text).map_err(Failure::during(stored.display()))
}

/// What was decided.
pub fn schedule(directory: &Path, name: &str) -> Result<Schedule, Failure> {
    let (stored, text) = read(directory, name, "schedule")?;
    Schedule::parse(&text).map_err(Failure::during(stored.display()))
}

fn read(directory: &Path, name: &str, ending: &str) -> Result<(PathBuf, String), Failure> {
    let file = file(directory, name, ending);
    let text = std::fs::read_to_string(&file).map_err(Failure::during(file.display()))?;
    Ok((file, text))
}

/// The file of what came from outside. Executions kept by earlier versions have none: what they ask the
/// outside for, they ask again.
fn input(directory: &Path, name: &str) -> Result<Option<String>, Failure> {
    let file = file(directory, name, "input");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::during(file.display())(error)),
    };
    parse_input(&text).map_err(Failure::during(file.display()))?;
    let file = file.canonicalize().map_err(Failure::during(file.display()))?;
    Ok(Some(file.to_string_lossy().into_owned()))
}

fn file(directory: &Path, name: &str, ending: &str) -> PathBuf {
    directory.join(format!("{name}.{ending}"))
}
