//! Programs that would gain privileges by being run: under the engine they would not gain them,
//! and behave in ways their author never saw, so they are refused.

use super::TargetError;
use rustix::fs::StatVfsMountFlags;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

const WHY: &str = "and would not get them under Raddle; run it as that user, or run a copy \
                   without the special permission";

/// Whose privileges a process has.
#[derive(Debug, Clone, Copy)]
struct Identity {
    user: u32,
    group: u32,
}

/// Refuses a program whose owner, group or capabilities the kernel would give to whoever runs it.
pub(super) fn check(file: &Path) -> Result<(), TargetError> {
    // Where the kernel ignores the permission, nothing would change.
    let ignored = rustix::fs::statvfs(file)
        .is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOSUID))
        || rustix::thread::no_new_privs().unwrap_or(false);
    if ignored {
        return Ok(());
    }
    let we = Identity {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    match gained(file, we) {
        Some(what) => Err(TargetError::refused(file, format!("runs with {what}, {WHY}"))),
        None => Ok(()),
    }
}

/// What running the file would change, in words.
fn gained(file: &Path, we: Identity) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let mode = metadata.mode();
    if mode & SETUID != 0 && metadata.uid() != we.user {
        return Some(format!("the privileges of user {} (setuid)", metadata.uid()));
    }
    if mode & SETGID != 0 && mode & GROUP_EXECUTE != 0 && metadata.gid() != we.group {
        return Some(format!("the privileges of group {} (setgid)", metadata.gid()));
    }
    // Root has every capability already.
    let mut value = [0u8; 64];
    let capable = rustix::fs::getxattr(file, "security.capability", &mut value).is_ok();
    (capable && we.user != 0).then(|| "file capabilities".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_what_changes_something_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let owner = file.path().metadata().unwrap();
        let same = Identity { user: owner.uid(), group: owner.gid() };
        let other = Identity { user: owner.uid() + 1, group: owner.gid() + 1 };
        let with = |mode, who| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).unwrap();
            gained(file.path(), who)
        };
        assert_eq!(with(0o755, other), None);
        assert_eq!(with(0o4755, same), None);
        assert_eq!(with(0o2755, same), None);
        assert!(with(0o4755, other).unwrap().contains("(setuid)"));
        assert!(with(0o2755, other).unwrap().contains("(setgid)"));
        // Without group execution the bit means mandatory locking.
        assert_eq!(with(0o2745, other), None);
    }
}
