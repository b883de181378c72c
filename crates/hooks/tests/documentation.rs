//! What `docs/hooks.md` shows can be copied.

use raddle_hooks::parse;

const PAGE: &str = include_str!("../../../docs/hooks.md");

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let pieces = PAGE.split(opening.as_str()).skip(1);
    pieces.filter_map(|piece| piece.split("\n```").next()).collect()
}

#[test]
fn examples_are_right() {
    let examples = blocks("toml");
    assert!(examples.len() >= 5);
    for example in examples {
        let text = match example.contains("[library]") {
            true => example.to_owned(),
            false => format!("[library]\nname = \"example\"\n{example}"),
        };
        let parsed = parse(&text, "docs/hooks.md");
        assert!(parsed.as_ref().is_ok_and(|file| !file.hooks.is_empty()), "{parsed:?}\n{text}");
    }
}

#[test]
fn messages_are_as_shown() {
    let shown: Vec<&str> = blocks("text").into_iter().flat_map(str::lines).collect();
    let hook = "[[hook]]\nfunctions = [\"spin_lock\"]\n";
    let library = "[library]\nname = \"mine\"\n\n";
    let wrong = [
        format!("{library}{hook}role = \"lock.aquire\"\n"),
        format!("{library}{hook}role = \"lock.acquire\"\nobject = \"arg0\"\n"),
        format!(
            "{library}{hook}role = \"lock.acquire\"\nobject = \"arg1\"\nsuccess = \"true\"\n\n\n\
             [[hook]]\nfunctions = [\"spin_lock\"]\nrole = \"function\"\n"
        ),
    ];
    let messages = wrong.iter().filter_map(|text| parse(text, "mine.toml").err());
    assert_eq!(messages.map(|error| error.to_string()).collect::<Vec<_>>(), shown);
}
