//! The name of a type as its own language writes it: `struct node *`, `std::atomic<int>[4]`,
//! `int (*)(void *)`, `&mut demo::Queue`.

use crate::dwarf::{Entry, View};
use crate::types::Types;
use std::borrow::Cow;

/// A type's name; `depth` ends what refers to itself.
pub(crate) fn type_name<'d>(view: &View<'d>, entry: Option<&Entry<'d>>) -> String {
    const MAX_DEPTH: usize = 32;
    name(view, entry, "", MAX_DEPTH)
}

/// The namespaces and classes around an entry, written before its name.
pub(crate) fn scope_prefix<'d>(view: &View<'d>, entry: &Entry<'d>) -> String {
    let mut prefix = String::new();
    for scope in view.scopes(entry.die) {
        let name = match scope.tag() {
            gimli::DW_TAG_namespace => {
                scope.name().unwrap_or(Cow::Borrowed("(anonymous namespace)"))
            }
            gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type => match scope.name() {
                Some(name) => name,
                None => continue,
            },
            _ => continue,
        };
        prefix.push_str(&name);
        prefix.push_str("::");
    }
    prefix
}

/// The type with `inner` (`*`, `[3]`) where a declarator would stand.
fn name<'d>(view: &View<'d>, entry: Option<&Entry<'d>>, inner: &str, depth: usize) -> String {
    let Some(entry) = entry else { return join("void", inner) };
    let Some(depth) = depth.checked_sub(1) else { return join("?", inner) };
    let types = Types::new(view);
    let target = types.of(entry);
    let of_target = |inner: &str| name(view, target.as_ref(), inner, depth);
    // Rust names its pointer types.
    let named_pointer = entry.name().filter(|_| {
        matches!(entry.tag(), gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type)
    });
    if let Some(name) = named_pointer {
        return join(&name, inner);
    }
    match entry.tag() {
        gimli::DW_TAG_pointer_type => of_target(&format!("*{inner}")),
        gimli::DW_TAG_reference_type => of_target(&format!("&{inner}")),
        gimli::DW_TAG_rvalue_reference_type => of_target(&format!("&&{inner}")),
        gimli::DW_TAG_const_type => qualified("const", target.as_ref(), inner, of_target),
        gimli::DW_TAG_volatile_type => qualified("volatile", target.as_ref(), inner, of_target),
        gimli::DW_TAG_restrict_type => of_target(inner),
        gimli::DW_TAG_atomic_type => qualified("_Atomic", target.as_ref(), inner, of_target),
        gimli::DW_TAG_array_type => {
            let counts = types.counts(entry).into_iter();
            let dimensions: String = counts
                .map(|count| format!("[{}]", count.map_or(String::new(), |n| n.to_string())))
                .collect();
            of_target(&format!("{}{dimensions}", grouped(inner)))
        }
        gimli::DW_TAG_subroutine_type => {
            let children = view.children(entry);
            let parameters: Vec<String> = children
                .iter()
                .filter(|child| child.tag() == gimli::DW_TAG_formal_parameter)
                .map(|child| name(view, types.of(child).as_ref(), "", depth / 2))
                .collect();
            of_target(&format!("{}({})", grouped(inner), parameters.join(", ")))
        }
        tag => {
            let own = entry.name().unwrap_or(Cow::Borrowed("(anonymous)"));
            let keyword = match tag {
                _ if !entry.unit.is_c() => "",
                gimli::DW_TAG_structure_type => "struct ",
                gimli::DW_TAG_union_type => "union ",
                gimli::DW_TAG_enumeration_type => "enum ",
                _ => "",
            };
            let scope = if entry.unit.is_c() || tag == gimli::DW_TAG_base_type {
                String::new()
            } else {
                scope_prefix(view, entry)
            };
            join(&format!("{keyword}{scope}{own}"), inner)
        }
    }
}

/// `const char *` but `char *const`.
fn qualified(
    word: &str,
    target: Option<&Entry>,
    inner: &str,
    of_target: impl Fn(&str) -> String,
) -> String {
    match target.map(Entry::tag) {
        Some(gimli::DW_TAG_pointer_type) => of_target(format!("{word} {inner}").trim_end()),
        _ => format!("{word} {}", of_target(inner)),
    }
}

fn grouped(inner: &str) -> String {
    if inner.starts_with(['*', '&']) { format!("({inner})") } else { inner.to_owned() }
}

fn join(name: &str, inner: &str) -> String {
    if inner.is_empty() || inner.starts_with('[') {
        format!("{name}{inner}")
    } else {
        format!("{name} {inner}")
    }
}
