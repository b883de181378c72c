//! The program to run, found and judged before anything is started, as `execvp` and the kernel
//! would: `PATH`, permissions, `#!` lines, the ELF header. The engine is started in the target's
//! place, so the kernel never sees the target's file, and nobody but us can say what is wrong
//! with it.

mod elf;
mod privileges;
mod script;

use raddle_symbols::Sanitizer;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Exit code: there is such a file, and it cannot be run.
const EXIT_NOT_EXECUTABLE: u8 = 126;
/// Exit code: there is no such file.
const EXIT_NOT_FOUND: u8 = 127;
/// Where a program is looked for without `PATH`; glibc's `execvp` does the same.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Scripts whose interpreters are scripts: the kernel goes this deep (`exec_binprm`).
const MAX_SCRIPTS: usize = 5;

/// A program that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The ELF file, absolute and without symbolic links; an interpreter's for a script.
    pub elf: PathBuf,
    /// The argument vector, beginning with what the program finds as its own name.
    pub arguments: Vec<OsString>,
}

impl Target {
    /// The sanitizer that the program was built with. Refused if it is one that does not bear being run by
    /// an engine.
    pub fn sanitizer(&self) -> Result<Option<Sanitizer>, TargetError> {
        match raddle_symbols::sanitizer(&self.elf) {
            Some(sanitizer @ (Sanitizer::Memory | Sanitizer::Thread)) => {
                let why = format!(
                    "is built with {} ({}), which wants the address space for itself and cannot run \
                     under Raddle; build it without",
                    sanitizer.name(),
                    sanitizer.option(),
                );
                Err(TargetError::refused(&self.elf, why))
            }
            other => Ok(other),
        }
    }
}

/// Why a program cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TargetError {
    /// No such file.
    #[error("{program}: {why}", program = .program.display())]
    NotFound {
        /// As given.
        program: PathBuf,
        /// What was missing.
        why: String,
    },
    /// A file that cannot be run, or that Raddle refuses to run.
    #[error("{program}: {why}", program = .program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// Why not.
        why: String,
    },
}

impl TargetError {
    /// The exit code of the command: 126 or 127.
    pub fn exit_code(&self) -> u8 {
        match self {
            TargetError::NotFound { .. } => EXIT_NOT_FOUND,
            TargetError::NotExecutable { .. } => EXIT_NOT_EXECUTABLE,
        }
    }

    fn not_found(program: &Path, why: impl Into<String>) -> Self {
        TargetError::NotFound { program: program.to_owned(), why: why.into() }
    }

    fn refused(program: &Path, why: impl Into<String>) -> Self {
        TargetError::NotExecutable { program: program.to_owned(), why: why.into() }
    }
}

/// Finds what `program` (a name and its arguments) would run in the directory `cwd`.
pub fn resolve(program: &[OsString], cwd: Option<&Path>) -> Result<Target, TargetError> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    resolve_with(program, cwd.unwrap_or(Path::new("")), &path)
}

fn resolve_with(program: &[OsString], cwd: &Path, path: &OsStr) -> Result<Target, TargetError> {
    let Some((name, rest)) = program.split_first().filter(|(name, _)| !name.is_empty()) else {
        return Err(TargetError::not_found(Path::new(""), "no program was given"));
    };
    let mut file = find(name, cwd, path)?;
    let mut arguments = vec![name.clone()];
    arguments.extend_from_slice(rest);
    for _ in 0..=MAX_SCRIPTS {
        let at = cwd.join(&file);
        let head = opening(&at)?;
        let Some(line) = script::interpreter(&head) else {
            elf::check(&at, &head, cwd)?;
            privileges::check(&at)?;
            let elf = at.canonicalize().map_err(|e| TargetError::refused(&at, e.to_string()))?;
            return Ok(Target { elf, arguments });
        };
        // As the kernel does: the interpreter, its one argument, and the script in the place of
        // the old first argument.
        let mut replaced = vec![line.program.clone()];
        replaced.extend(line.argument);
        replaced.push(file.into());
        replaced.extend(arguments.drain(1..));
        arguments = replaced;
        let interpreter = PathBuf::from(line.program);
        if let Err(TargetError::NotFound { .. }) = executable(&interpreter, cwd) {
            let why = format!("its interpreter {} does not exist", interpreter.display());
            return Err(TargetError::not_found(&at, why));
        }
        executable(&interpreter, cwd)?;
        file = interpreter;
    }
    let first = find(name, cwd, path)?;
    Err(TargetError::refused(&first, "too many scripts, each the interpreter of the one before"))
}

/// The file a name stands for, as `execvp` looks for it.
fn find(name: &OsStr, cwd: &Path, path: &OsStr) -> Result<PathBuf, TargetError> {
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name), cwd).map(|()| PathBuf::from(name));
    }
    let mut denied = None;
    // `split_paths` turns an empty element into an empty path: the current directory, as in a shell.
    for directory in std::env::split_paths(path) {
        let file =
            if directory.as_os_str().is_empty() { Path::new(".") } else { &directory }.join(name);
        match executable(&file, cwd) {
            Ok(()) => return Ok(file),
            Err(TargetError::NotFound { .. }) => {}
            Err(refused) => denied = denied.or(Some(refused)),
        }
    }
    let here = Path::new(".").join(name);
    let why = match executable(&here, cwd) {
        Ok(()) => format!("command not found; did you mean {}?", here.display()),
        Err(_) => "command not found".to_owned(),
    };
    Err(denied.unwrap_or_else(|| TargetError::not_found(Path::new(name), why)))
}

/// Is this a file with permission to be executed?
fn executable(file: &Path, cwd: &Path) -> Result<(), TargetError> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let at = cwd.join(file);
    let metadata = match at.metadata() {
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => {
            return Err(TargetError::not_found(file, "no such file"));
        }
        Err(e) => return Err(TargetError::refused(file, e.to_string())),
        Ok(metadata) => metadata,
    };
    if metadata.is_dir() {
        return Err(TargetError::refused(file, "is a directory, not a program"));
    }
    if !metadata.is_file() {
        return Err(TargetError::refused(file, "is not a regular file"));
    }
    // By the effective ids and the mount's `noexec`, which the permission bits do not tell.
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, &at, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| TargetError::refused(file, "there is no permission to execute it"))
}

/// A file's first bytes, as many as the kernel looks at.
fn opening(file: &Path) -> Result<Vec<u8>, TargetError> {
    let mut head = Vec::with_capacity(script::LOOKED_AT);
    File::open(file)
        .and_then(|f| f.take(script::LOOKED_AT as u64).read_to_end(&mut head))
        .map_err(|e| TargetError::refused(file, format!("cannot be read: {e}")))?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A directory of made-up programs.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Place(tempfile::tempdir().unwrap())
        }

        fn put(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn resolve(&self, program: &[&str]) -> Result<Target, TargetError> {
            let program: Vec<OsString> = program.iter().map(OsString::from).collect();
            resolve_with(&program, self.0.path(), OsStr::new("bin:other"))
        }

        fn refusal(&self, program: &str) -> (u8, String) {
            let error = self.resolve(&[program]).unwrap_err();
            (error.exit_code(), error.to_string().replace(self.0.path().to_str().unwrap(), "DIR"))
        }
    }

    fn elf() -> Vec<u8> {
        elf::tests::header(2, 1, 2, 62)
    }

    #[test]
    fn a_path_is_taken_as_it_is_and_a_name_is_looked_for() {
        let place = Place::new();
        let real = place.put("other/tool", &elf(), 0o755).canonicalize().unwrap();
        let found = place.resolve(&["tool", "-x", "a b"]).unwrap();
        assert_eq!(
            found,
            Target { elf: real.clone(), arguments: ["tool", "-x", "a b"].map(Into::into).into() }
        );
        let found = place.resolve(&["./other/tool"]).unwrap();
        assert_eq!(found, Target { elf: real.clone(), arguments: vec!["./other/tool".into()] });
        assert_eq!(place.refusal("tol"), (127, "tol: command not found".into()));
        assert_eq!(place.refusal("./tool"), (127, "./tool: no such file".into()));
        assert_eq!(place.refusal("other/tool/x"), (127, "other/tool/x: no such file".into()));

        // A name that may not be executed is passed over, and said only when there is no other.
        place.put("bin/tool", &elf(), 0o644);
        assert_eq!(place.resolve(&["tool"]).unwrap().elf, real);
        place.put("bin/alone", &elf(), 0o644);
        let denied = "bin/alone: there is no permission to execute it";
        assert_eq!(place.refusal("alone"), (126, denied.into()));
    }

    #[test]
    fn the_real_file_is_run_under_the_name_of_its_link() {
        let place = Place::new();
        let real = place.put("busybox", &elf(), 0o755).canonicalize().unwrap();
        std::os::unix::fs::symlink("busybox", place.0.path().join("ls")).unwrap();
        let found = place.resolve(&["./ls"]).unwrap();
        assert_eq!(found, Target { elf: real, arguments: vec!["./ls".into()] });
    }

    #[test]
    fn what_is_no_program_is_refused_in_a_sentence() {
        let place = Place::new();
        fs::create_dir(place.0.path().join("d")).unwrap();
        place.put("text", b"hello\n", 0o755);
        place.put("empty", b"", 0o755);
        place.put("thirty-two", &elf::tests::header(1, 1, 2, 3), 0o755);
        place.put("arm", &elf::tests::header(2, 1, 3, 183), 0o755);
        assert_eq!(place.refusal("./d"), (126, "./d: is a directory, not a program".into()));
        let not_elf = "DIR/./text: is neither an ELF program nor a script with a #! line";
        assert_eq!(place.refusal("./text"), (126, not_elf.into()));
        assert_eq!(place.refusal("./empty"), (126, "DIR/./empty: is empty".into()));
        let bits = "DIR/./thirty-two: is a 32-bit program; Raddle runs 64-bit x86 programs";
        assert_eq!(place.refusal("./thirty-two"), (126, bits.into()));
        let arm = "DIR/./arm: is a program for AArch64; Raddle runs 64-bit x86 programs";
        assert_eq!(place.refusal("./arm"), (126, arm.into()));
        let none = resolve_with(&[], Path::new(""), OsStr::new("")).unwrap_err();
        assert_eq!((none.exit_code(), none.to_string()), (127, ": no program was given".into()));
    }

    #[test]
    fn scripts_lead_to_their_interpreter_as_in_the_kernel() {
        let place = Place::new();
        let real = place.put("run", &elf(), 0o755).canonicalize().unwrap();
        place.put("inner", b"#! ./run  -a  -b \nrest", 0o755);
        place.put("outer", b"#!./inner\n", 0o755);
        let found = place.resolve(&["./outer", "x"]).unwrap();
        assert_eq!(found.elf, real);
        assert_eq!(found.arguments, ["./run", "-a  -b", "./inner", "./outer", "x"]);

        place.put("bin/named", b"#!./run", 0o755);
        let found = place.resolve(&["named", "y"]).unwrap();
        assert_eq!(found.arguments, ["./run", "bin/named", "y"]);
    }

    #[test]
    fn a_script_without_its_interpreter_is_not_found_and_a_circle_ends() {
        let place = Place::new();
        place.put("lost", b"#!/no/such/interpreter\n", 0o755);
        let lost = "DIR/./lost: its interpreter /no/such/interpreter does not exist";
        assert_eq!(place.refusal("./lost"), (127, lost.into()));
        place.put("plain", b"text", 0o644);
        place.put("denied", b"#!./plain\n", 0o755);
        let denied = "./plain: there is no permission to execute it";
        assert_eq!(place.refusal("./denied"), (126, denied.into()));
        place.put("circle", b"#!./circle\n", 0o755);
        let circle = "./circle: too many scripts, each the interpreter of the one before";
        assert_eq!(place.refusal("./circle"), (126, circle.into()));

        // Five scripts are as many as the kernel follows.
        place.put("s0", &elf(), 0o755);
        for depth in 1..=6 {
            let line = format!("#!./s{}\n", depth - 1);
            place.put(&format!("s{depth}"), line.as_bytes(), 0o755);
        }
        assert_eq!(place.resolve(&["./s5"]).unwrap().arguments.len(), 6);
        assert_eq!(place.refusal("./s6").0, 126);
    }
}
