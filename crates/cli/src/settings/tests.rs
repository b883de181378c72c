//! Which value wins, and what is said when one is wrong.

use super::*;
use crate::Raddle;
use clap::CommandFactory;

struct World {
    root: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl World {
    fn new(file: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("deep/er")).unwrap();
        if !file.is_empty() {
            std::fs::write(root.path().join(FILE), file).unwrap();
        }
        World { root, variables: Vec::new() }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn settings(&self, arguments: &[&str]) -> Result<(Settings, Vec<OsString>), String> {
        let arguments: Vec<OsString> =
            ["raddle"].iter().chain(arguments).map(OsString::from).collect();
        let variables = self.variables.iter().cloned();
        let cwd = self.root.path().join("deep/er");
        let settings = Settings::read(&Raddle::command(), &arguments, variables, &cwd);
        settings.map(|settings| (settings, arguments)).map_err(|e| self.relative(&e.to_string()))
    }

    /// The values of an option of `run` in force.
    fn value(&self, arguments: &[&str], option: &str) -> Vec<String> {
        let (settings, arguments) = self.settings(arguments).unwrap();
        let matches = match settings.parse(&Raddle::command(), &arguments) {
            Ok(matches) => matches,
            Err(Stop::Clap(error, _)) => panic!("{error}"),
            Err(Stop::Settings(error)) => panic!("{error}"),
        };
        let (_, matches) = matches.subcommand().unwrap();
        let raw = matches.get_raw(option).into_iter().flatten();
        raw.map(|value| self.relative(&value.to_string_lossy())).collect()
    }

    fn relative(&self, text: &str) -> String {
        text.replace(&self.root.path().display().to_string(), "ROOT")
    }
}

const RUN: [&str; 3] = ["run", "--", "x"];

#[test]
fn every_option_is_a_variable_and_a_key() {
    let command = Raddle::command();
    for subcommand in command.get_subcommands() {
        for option in options(subcommand) {
            let name = option.get_long().unwrap();
            let value = option
                .get_possible_values()
                .first()
                .map_or("1".to_owned(), |value| value.get_name().to_owned());
            let value = if option.get_action().takes_values() { value } else { "true".into() };
            let world = World::new(&format!("[{}]\n{name} = '{value}'", subcommand.get_name()));
            let (settings, _) = world.settings(&[]).unwrap();
            let from_file = settings.of(subcommand.get_name(), option).unwrap();
            assert!(
                from_file.origin.ends_with(&format!("raddle.toml:2 [{}]", subcommand.get_name()))
            );
            let world = World::new("").with(&variable(name), &value);
            let (settings, _) = world.settings(&[]).unwrap();
            let from_variable = settings.of(subcommand.get_name(), option);
            if OWN.contains(&(subcommand.get_name(), name)) {
                assert_eq!(from_variable, None);
                continue;
            }
            let from_variable = from_variable.unwrap();
            assert_eq!(from_variable, Setting { values: vec![value], origin: variable(name) });
        }
    }
}

#[test]
fn the_nearest_to_the_user_wins() {
    let file = "timeout = '1s'\n[run]\ntimeout = '2s'\n[profile.ci]\ntimeout = '3s'\n\
                [profile.ci.run]\ntimeout = '4s'\n[profile.other]\n";
    let world = World::new("timeout = '1s'\n");
    assert_eq!(world.value(&RUN, "timeout"), ["1s"]);
    let world = World::new(file);
    assert_eq!(world.value(&RUN, "timeout"), ["2s"]);
    assert_eq!(world.value(&["--profile", "ci", "run", "--", "x"], "timeout"), ["4s"]);
    assert_eq!(world.value(&["run", "--profile=other", "--", "x"], "timeout"), ["2s"]);
    let world = World::new(file).with("RADDLE_PROFILE", "ci");
    assert_eq!(world.value(&RUN, "timeout"), ["4s"]);
    let world = world.with("RADDLE_TIMEOUT", "5s");
    assert_eq!(world.value(&RUN, "timeout"), ["5s"]);
    assert_eq!(world.value(&["run", "--timeout", "6s", "--", "x"], "timeout"), ["6s"]);
    // The target's own arguments are not ours.
    assert_eq!(world.value(&["run", "--", "x", "--profile", "other"], "timeout"), ["5s"]);
}

#[test]
fn lists_switches_and_paths() {
    let file = "hooks = ['a.toml', '/b.toml']\nfollow = true\nerror-exitcode = 9\n";
    let world = World::new(file);
    assert_eq!(world.value(&RUN, "hooks"), ["ROOT/a.toml", "/b.toml"]);
    assert_eq!(world.value(&["run", "--hooks", "c.toml", "--", "x"], "hooks"), ["c.toml"]);
    assert_eq!(world.value(&RUN, "follow"), ["true"]);
    assert_eq!(world.value(&RUN, "error_exitcode"), ["9"]);
    let world = world.with("RADDLE_FOLLOW", "0").with("RADDLE_HOOKS", "d.toml:e.toml");
    assert_eq!(world.value(&RUN, "follow"), ["false"]);
    assert_eq!(world.value(&RUN, "hooks"), ["d.toml", "e.toml"]);
}

#[test]
fn what_is_typed_beats_what_it_excludes() {
    let world = World::new("quiet = true");
    assert_eq!(world.value(&RUN, "quiet"), ["true"]);
    assert_eq!(world.value(&["run", "--verbose", "--", "x"], "quiet"), ["false"]);
}

#[test]
fn mistakes_are_named_with_their_place_and_the_nearest_right_thing() {
    let said = |file: &str, arguments: &[&str]| World::new(file).settings(arguments).unwrap_err();
    assert_eq!(
        said("\ntimeot = '1s'", &[]),
        "ROOT/raddle.toml:2: there is no option or command timeot; did you mean timeout?"
    );
    assert_eq!(
        said("[rnu]\ntimeout = '1s'", &[]),
        "ROOT/raddle.toml:1: there is no option or command rnu; did you mean run?"
    );
    assert_eq!(
        said("[run]\n\nonly = 'sync'", &[]),
        "ROOT/raddle.toml:3: raddle run has no option only; did you mean only-in?"
    );
    assert_eq!(
        said("[profile.ci]\ndetectr = 'hb'", &[]),
        "ROOT/raddle.toml:2: there is no option or command detectr; did you mean detector?"
    );
    let syntax = said("timeout = ", &[]);
    assert!(syntax.starts_with("ROOT/raddle.toml:1: "), "{syntax}");
    assert_eq!(
        said("[profile.ci]", &["--profile", "cl"]),
        "there is no [profile.cl] in ROOT/raddle.toml; it has ci"
    );
    assert_eq!(
        said("", &["--profile", "ci"]),
        "there is no profile ci: no raddle.toml was found here or above"
    );
    let none = said("", &["--config", "none.toml"]);
    assert!(none.starts_with("reading ROOT/deep/er/none.toml: "), "{none}");
}

#[test]
fn a_wrong_value_is_traced_to_where_it_stands() {
    let blamed = |world: World| {
        let (settings, arguments) = world.settings(&RUN).unwrap();
        match settings.parse(&Raddle::command(), &arguments) {
            Err(Stop::Clap(error, origin)) => {
                assert!(error.to_string().contains("--timeout"), "{error}");
                origin.map(|origin| world.relative(&origin))
            }
            _ => panic!("it was accepted"),
        }
    };
    let at = |file: &str| blamed(World::new(file)).unwrap();
    assert_eq!(at("timeout = 'soon'"), "ROOT/raddle.toml:1");
    assert_eq!(at("seed = 1\n[run]\n# timeout\ntimeout = 'soon'"), "ROOT/raddle.toml:4 [run]");
    assert_eq!(at("seed = 1\nrun.timeout = 'soon'"), "ROOT/raddle.toml:2 [run]");
    assert_eq!(at("seed = 1\nrun = { timeout = 'soon' }"), "ROOT/raddle.toml:2 [run]");
    let world = World::new("").with("RADDLE_TIMEOUT", "soon");
    assert_eq!(blamed(world).as_deref(), Some("RADDLE_TIMEOUT"));
}

#[test]
fn a_policy_for_all_does_not_change_what_confirm_and_replay_do() {
    let world = World::new("policy = 'pct'\nseed = 3\n").with("RADDLE_POLICY", "random");
    assert_eq!(world.value(&RUN, "policy"), ["random"]);
    assert_eq!(world.value(&["confirm"], "policy"), [""; 0]);
    assert_eq!(world.value(&["confirm"], "seed"), ["3"]);
    assert_eq!(world.value(&["replay", "R1"], "policy"), [""; 0]);
    assert_eq!(world.value(&["replay", "R1"], "seed"), [""; 0]);
    assert_eq!(world.value(&["replay", "R1", "--seed", "4"], "seed"), ["4"]);
    let own = World::new("[confirm]\npolicy = 'pct'\n");
    assert_eq!(own.value(&["confirm"], "policy"), ["pct"]);
}
