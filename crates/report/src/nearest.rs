//! The right word nearest to a wrong one.

/// `; did you mean NAME?`, if one of the names is near enough to be meant.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = names.into_iter().map(|name| (strsim::osa_distance(name, wrong), name)).min();
    match near {
        Some((distance, name)) if distance <= name.len().div_ceil(2) => {
            format!("; did you mean {name}?")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_only() {
        assert_eq!(did_you_mean("rnu", ["events", "run"]), "; did you mean run?");
        assert_eq!(did_you_mean("elephant", ["events", "run"]), "");
    }
}
