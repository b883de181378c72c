//! The roles a function can have, and which operands each takes.
//!
//! [`ROLES`] is the list for messages and documents, [`build`] makes the role; a test holds the
//! two together. Operands that an event needs before the function runs ([`Operands::on_entry`])
//! must not depend on its result.

use crate::error::HookError;
use raddle_model::hook::{Span, Variadic};
use raddle_model::{Dependences, Expr, Ignored, LockMode, Role};

/// Name and operands of every role, in the order of `docs/hooks.md`.
pub(crate) const ROLES: &[(&str, &[&str])] = &[
    ("function", &[]),
    ("lock.create", &["object"]),
    ("lock.destroy", &["object"]),
    ("lock.acquire", &["object", "mode"]),
    ("lock.try", &["object", "mode"]),
    ("lock.release", &["object", "mode"]),
    ("lock.taken", &["object", "exclusive"]),
    ("lock.given", &["object", "exclusive"]),
    ("lock.hands-over", &["object"]),
    ("condition.wait", &["object", "lock"]),
    ("condition.wrapper", &[]),
    ("condition.signal", &["object"]),
    ("condition.broadcast", &["object"]),
    ("barrier.create", &["object", "count"]),
    ("barrier.wait", &["object"]),
    ("barrier.enter", &["object"]),
    ("barrier.leave", &["object"]),
    ("semaphore.create", &["object", "value"]),
    ("semaphore.post", &["object"]),
    ("semaphore.wait", &["object"]),
    ("once.call", &["object"]),
    ("once.begin", &["object"]),
    ("once.end", &["object"]),
    ("once.abort", &["object"]),
    ("thread.create", &["handle", "start"]),
    ("thread.join", &["handle"]),
    ("thread.detach", &["handle"]),
    ("thread.exit", &[]),
    ("thread.pause", &[]),
    ("thread.cancel", &["handle"]),
    ("thread.name", &["handle", "name"]),
    ("wait", &["object"]),
    ("post", &["object"]),
    ("memory.allocate", &["address", "size"]),
    ("memory.reallocate", &["address", "old", "size"]),
    ("memory.free", &["address"]),
    ("memory.range", &["reads", "writes"]),
    ("memory.print", &["format", "values", "list", "reads", "writes"]),
    ("memory.scan", &["format", "values", "reads", "writes"]),
    ("memory.renew", &["address", "size"]),
    ("memory.benign", &["address", "size"]),
    ("order.release", &["object"]),
    ("order.acquire", &["object"]),
    ("order.put", &["object"]),
    ("order.get", &["object"]),
    ("ignore.reads", &["on"]),
    ("ignore.writes", &["on"]),
    ("ignore.synchronisation", &["on"]),
    ("detection", &["on"]),
    ("exit.register", &[]),
    ("exit.run", &[]),
    ("team.fork", &["data"]),
    ("team.begin", &["data"]),
    ("team.join", &[]),
    ("team.barrier", &[]),
    ("task.create", &["data", "depends"]),
    ("task.wait", &[]),
    ("transaction.start", &[]),
    ("transaction.commit", &[]),
    ("transaction.abort", &[]),
    ("transaction.read", &["address", "size"]),
    ("transaction.write", &["address", "size"]),
];

/// Roles that can be told from an atomic instruction alone, without a call around it.
pub(crate) const INLINED: &[&str] = &[
    "function",
    "lock.acquire",
    "lock.try",
    "lock.release",
    "condition.signal",
    "condition.broadcast",
];

/// Roles that mean nothing without the function they call back.
pub(crate) const WITH_CALLBACK: &[&str] = &["once.call", "team.fork", "task.create"];

/// Is the library alone with itself inside such a function, unless the file says otherwise?
/// Not in a plain function, and not where the thread's or the program's own clean-up runs.
pub(crate) fn is_opaque(role: &str) -> bool {
    !matches!(role, "function" | "thread.exit" | "exit.run" | "condition.wrapper" | "thread.pause")
}

/// The operands one hook of a file gives.
pub(crate) trait Operands {
    /// An operand that may be evaluated after the call.
    fn anytime(&self, key: &str) -> Result<Expr, HookError>;
    /// An operand that is needed when the function is entered.
    fn on_entry(&self, key: &str) -> Result<Expr, HookError>;
    /// `mode`, if given.
    fn mode(&self) -> Result<Option<LockMode>, HookError>;
    /// `depends`, if given.
    fn depends(&self) -> Result<Option<Dependences>, HookError>;
    /// `reads` and `writes`, at least one stretch.
    fn spans(&self) -> Result<(Vec<Span>, Vec<Span>), HookError>;
    /// `values`: the number of an argument.
    fn first(&self) -> Result<u8, HookError>;
    /// `values` or `list`.
    fn variadic(&self) -> Result<Variadic, HookError>;
}

/// The role of this name, if there is one.
pub(crate) fn build(name: &str, from: &impl Operands) -> Option<Result<Role, HookError>> {
    let built = (|| {
        Ok(Some(match name {
            "function" => Role::Function,
            "lock.create" => Role::LockCreate { object: from.anytime("object")? },
            "lock.destroy" => Role::LockDestroy { object: from.on_entry("object")? },
            "lock.acquire" | "lock.try" => Role::LockAcquire {
                object: from.anytime("object")?,
                mode: from.mode()?.unwrap_or(LockMode::Exclusive),
                waits: name == "lock.acquire",
            },
            "lock.release" => {
                Role::LockRelease { object: from.on_entry("object")?, mode: from.mode()? }
            }
            "lock.taken" => Role::LockTaken {
                object: from.on_entry("object")?,
                exclusive: from.on_entry("exclusive")?,
            },
            "lock.given" => Role::LockGiven {
                object: from.on_entry("object")?,
                exclusive: from.on_entry("exclusive")?,
            },
            "lock.hands-over" => Role::LockHandsOver { object: from.on_entry("object")? },
            "condition.wait" => Role::ConditionWait {
                object: from.on_entry("object")?,
                lock: from.on_entry("lock")?,
            },
            "condition.wrapper" => Role::ConditionWrapper,
            "condition.signal" => Role::ConditionSignal { object: from.on_entry("object")? },
            "condition.broadcast" => Role::ConditionBroadcast { object: from.on_entry("object")? },
            "barrier.create" => Role::BarrierCreate {
                object: from.anytime("object")?,
                count: from.anytime("count")?,
            },
            "barrier.wait" => Role::BarrierWait { object: from.on_entry("object")? },
            "barrier.enter" => Role::BarrierEnter { object: from.on_entry("object")? },
            "barrier.leave" => Role::BarrierLeave { object: from.on_entry("object")? },
            "semaphore.create" => Role::SemaphoreCreate {
                object: from.anytime("object")?,
                value: from.anytime("value")?,
            },
            "semaphore.post" => Role::SemaphorePost { object: from.on_entry("object")? },
            "semaphore.wait" => Role::SemaphoreWait { object: from.anytime("object")? },
            "once.call" => Role::OnceCall { object: from.on_entry("object")? },
            "once.begin" => Role::OnceBegin { object: from.anytime("object")? },
            "once.end" => Role::OnceEnd { object: from.on_entry("object")? },
            "once.abort" => Role::OnceAbort { object: from.on_entry("object")? },
            "thread.create" => Role::ThreadCreate {
                handle: from.anytime("handle")?,
                start: from.on_entry("start")?,
            },
            "thread.join" => Role::ThreadJoin { handle: from.anytime("handle")? },
            "thread.detach" => Role::ThreadDetach { handle: from.anytime("handle")? },
            "thread.exit" => Role::ThreadExit,
            "thread.pause" => Role::ThreadPause,
            "thread.cancel" => Role::ThreadCancel { handle: from.anytime("handle")? },
            "thread.name" => {
                Role::ThreadName { handle: from.anytime("handle")?, name: from.anytime("name")? }
            }
            "wait" => Role::Wait { object: from.anytime("object")? },
            "post" => Role::Post { object: from.on_entry("object")? },
            "memory.allocate" => {
                Role::Allocate { address: from.anytime("address")?, size: from.anytime("size")? }
            }
            "memory.reallocate" => Role::Reallocate {
                address: from.anytime("address")?,
                old: from.on_entry("old")?,
                size: from.anytime("size")?,
            },
            "memory.free" => Role::Free { address: from.on_entry("address")? },
            "memory.range" => {
                let (reads, writes) = from.spans()?;
                Role::Range { reads, writes }
            }
            "memory.print" => {
                let (reads, writes) = from.spans()?;
                let (format, values) = (from.on_entry("format")?, from.variadic()?);
                Role::Print { format, values, reads, writes }
            }
            "memory.scan" => {
                let (reads, writes) = from.spans()?;
                let (format, first) = (from.on_entry("format")?, from.first()?);
                Role::Scan { format, first, reads, writes }
            }
            "memory.renew" => {
                Role::Renew { address: from.on_entry("address")?, size: from.on_entry("size")? }
            }
            "memory.benign" => {
                Role::Benign { address: from.on_entry("address")?, size: from.on_entry("size")? }
            }
            "order.release" => Role::OrderRelease { object: from.on_entry("object")? },
            "order.acquire" => Role::OrderAcquire { object: from.anytime("object")? },
            "order.put" => Role::OrderPut { object: from.on_entry("object")? },
            "order.get" => Role::OrderGet { object: from.anytime("object")? },
            "ignore.reads" => Role::Ignore { what: Ignored::Reads, on: from.on_entry("on")? },
            "ignore.writes" => Role::Ignore { what: Ignored::Writes, on: from.on_entry("on")? },
            "ignore.synchronisation" => {
                Role::Ignore { what: Ignored::Synchronisation, on: from.on_entry("on")? }
            }
            "detection" => Role::Detection { on: from.on_entry("on")? },
            "exit.register" => Role::ExitRegister,
            "exit.run" => Role::ExitRun,
            "team.fork" => Role::TeamFork { data: from.on_entry("data")? },
            "team.begin" => Role::TeamBegin { data: from.on_entry("data")? },
            "team.join" => Role::TeamJoin,
            "team.barrier" => Role::TeamBarrier,
            "task.create" => {
                Role::TaskCreate { data: from.on_entry("data")?, depends: from.depends()? }
            }
            "task.wait" => Role::TaskWait,
            "transaction.start" => Role::TransactionStart,
            "transaction.commit" => Role::TransactionCommit,
            "transaction.abort" => Role::TransactionAbort,
            "transaction.read" => Role::TransactionRead {
                address: from.anytime("address")?,
                size: from.anytime("size")?,
            },
            "transaction.write" => Role::TransactionWrite {
                address: from.anytime("address")?,
                size: from.anytime("size")?,
            },
            _ => return Ok(None),
        }))
    })();
    built.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// Gives everything, and notes what was asked for.
    #[derive(Default)]
    struct Everything(RefCell<BTreeSet<String>>);

    impl Operands for Everything {
        fn anytime(&self, key: &str) -> Result<Expr, HookError> {
            self.0.borrow_mut().insert(key.to_owned());
            Ok(Expr::Arg(1))
        }

        fn on_entry(&self, key: &str) -> Result<Expr, HookError> {
            self.anytime(key)
        }

        fn depends(&self) -> Result<Option<Dependences>, HookError> {
            self.0.borrow_mut().insert("depends".to_owned());
            Ok(None)
        }

        fn mode(&self) -> Result<Option<LockMode>, HookError> {
            self.0.borrow_mut().insert("mode".to_owned());
            Ok(None)
        }

        fn spans(&self) -> Result<(Vec<Span>, Vec<Span>), HookError> {
            self.0.borrow_mut().extend(["reads".to_owned(), "writes".to_owned()]);
            Ok((vec![], vec![]))
        }

        fn first(&self) -> Result<u8, HookError> {
            self.anytime("values").map(|_| 1)
        }

        fn variadic(&self) -> Result<Variadic, HookError> {
            self.0.borrow_mut().extend(["values".to_owned(), "list".to_owned()]);
            Ok(Variadic::From(1))
        }
    }

    #[test]
    fn the_page_lists_every_role_in_this_order() {
        let page = include_str!("../../../docs/hooks.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let listed: Vec<(&str, Vec<&str>)> = rows
            .filter(|(role, _)| {
                role.contains('.') || ["function", "wait", "post", "detection"].contains(role)
            })
            .map(|(role, rest)| {
                let cell = rest.split(" |").next().unwrap_or("").trim_start_matches('|');
                (role, cell.split('`').skip(1).step_by(2).collect())
            })
            .take(ROLES.len())
            .collect();
        let known: Vec<(&str, Vec<&str>)> =
            ROLES.iter().map(|(role, operands)| (*role, operands.to_vec())).collect();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_list_and_the_builder_agree() {
        for (name, operands) in ROLES {
            let from = Everything::default();
            assert!(matches!(build(name, &from), Some(Ok(_))), "{name}");
            let listed: BTreeSet<String> = operands.iter().map(|o| o.to_string()).collect();
            assert_eq!(*from.0.borrow(), listed, "{name}");
        }
        assert!(build("lock", &Everything::default()).is_none());
        let known = |name: &&str| ROLES.iter().any(|(role, _)| role == name);
        assert!(INLINED.iter().all(&known));
        assert!(WITH_CALLBACK.iter().all(&known));
    }
}
