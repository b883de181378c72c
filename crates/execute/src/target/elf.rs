//! Is this file a program for this machine? The ELF header and the dynamic linker it names,
//! which are all the kernel looks at.

use super::TargetError;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_SHARED: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PT_INTERP: u32 = 3;
/// A path cannot be longer; a larger interpreter segment is damage.
const MAX_PATH: u64 = 4096;

const ONLY: &str = "Raddle runs 64-bit x86 programs";

/// Refuses what is no x86-64 program. `head` is the file's beginning.
pub(super) fn check(file: &Path, head: &[u8], cwd: &Path) -> Result<(), TargetError> {
    let refused = |why: String| Err(TargetError::refused(file, why));
    if head.is_empty() {
        return refused("is empty".into());
    }
    if !head.starts_with(MAGIC) {
        return refused("is neither an ELF program nor a script with a #! line".into());
    }
    if head.len() < HEADER {
        return refused("is cut off inside its ELF header".into());
    }
    if head[4] != CLASS_64 {
        return refused(format!("is a 32-bit program; {ONLY}"));
    }
    if head[5] != LITTLE_ENDIAN {
        return refused(format!("is a big-endian program; {ONLY}"));
    }
    let machine = u16_at(head, 18);
    if machine != MACHINE_X86_64 {
        return refused(format!("is a program for {}; {ONLY}", machine_name(machine)));
    }
    match u16_at(head, 16) {
        TYPE_EXECUTABLE | TYPE_SHARED => {}
        1 => return refused("is an object file; link it first".into()),
        4 => return refused("is a core dump, not a program".into()),
        other => return refused(format!("is an ELF file of type {other}, not a program")),
    }
    let linker = match dynamic_linker(file, head) {
        Ok(linker) => linker,
        Err(e) => return refused(format!("is damaged: {e}")),
    };
    match linker {
        Some(linker) if !cwd.join(&linker).exists() => {
            let why = format!("its dynamic linker {} does not exist", linker.display());
            Err(TargetError::not_found(file, why))
        }
        _ => Ok(()),
    }
}

/// The path in the program's `PT_INTERP` segment.
fn dynamic_linker(file: &Path, head: &[u8]) -> std::io::Result<Option<std::path::PathBuf>> {
    let opened = File::open(file)?;
    let table = u64_at(head, 32);
    let size = u16_at(head, 54);
    let count = u16_at(head, 56);
    if count > 0 && usize::from(size) != PROGRAM_HEADER {
        return Err(std::io::Error::other("its program headers have an impossible size"));
    }
    let mut row = [0; PROGRAM_HEADER];
    for i in 0..u64::from(count) {
        let at = table.saturating_add(i * PROGRAM_HEADER as u64);
        opened.read_exact_at(&mut row, at).map_err(|_| cut_off("its program headers"))?;
        if u32_at(&row, 0) != PT_INTERP {
            continue;
        }
        let (offset, length) = (u64_at(&row, 8), u64_at(&row, 32));
        if length > MAX_PATH {
            return Err(std::io::Error::other("the name of its dynamic linker is too long"));
        }
        let mut name = vec![0; length as usize];
        opened.read_exact_at(&mut name, offset).map_err(|_| cut_off("its dynamic linker"))?;
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        return Ok(Some(std::ffi::OsStr::from_bytes(name).into()));
    }
    Ok(None)
}

fn cut_off(what: &str) -> std::io::Error {
    std::io::Error::other(format!("{what} would be past the end of the file"))
}

fn machine_name(machine: u16) -> String {
    match machine {
        2 | 18 | 43 => "SPARC".into(),
        3 => "32-bit x86".into(),
        8 => "MIPS".into(),
        20 | 21 => "PowerPC".into(),
        22 => "S/390".into(),
        40 => "32-bit ARM".into(),
        183 => "AArch64".into(),
        243 => "RISC-V".into(),
        258 => "LoongArch".into(),
        other => format!("another machine (number {other})"),
    }
}

// Callers have checked the length.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An ELF header with no program headers.
    pub(in super::super) fn header(class: u8, data: u8, kind: u8, machine: u8) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = class;
        bytes[5] = data;
        bytes[16] = kind;
        bytes[18] = machine;
        bytes
    }

    fn with_linker(name: &[u8], segment_length: u64) -> Vec<u8> {
        let mut bytes = header(2, 1, 3, 62);
        bytes[32] = HEADER as u8;
        bytes[54] = PROGRAM_HEADER as u8;
        bytes[56] = 1;
        let mut row = [0; PROGRAM_HEADER];
        row[0] = PT_INTERP as u8;
        row[8] = (HEADER + PROGRAM_HEADER) as u8;
        row[32..40].copy_from_slice(&segment_length.to_le_bytes());
        bytes.extend_from_slice(&row);
        bytes.extend_from_slice(name);
        bytes
    }

    fn judged(bytes: &[u8]) -> Option<(u8, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = check(file.path(), bytes, Path::new("")).err()?;
        let (TargetError::NotFound { why, .. } | TargetError::NotExecutable { why, .. }) = &error;
        Some((error.exit_code(), why.clone()))
    }

    #[test]
    fn this_machines_programs_pass() {
        assert_eq!(judged(&header(2, 1, 2, 62)), None);
        assert_eq!(judged(&with_linker(b"/dev/null\0", 10)), None);
    }

    #[test]
    fn damage_is_named() {
        let cut = header(2, 1, 2, 62);
        assert_eq!(judged(&cut[..40]).unwrap().1, "is cut off inside its ELF header");
        let object = judged(&header(2, 1, 1, 62)).unwrap();
        assert_eq!(object, (126, "is an object file; link it first".into()));
        let linker = judged(&with_linker(b"/x", 99)).unwrap();
        assert!(linker.1.contains("its dynamic linker would be past the end"), "{linker:?}");
        let linker = judged(&with_linker(b"/x", 1 << 40)).unwrap();
        assert!(linker.1.contains("too long"), "{linker:?}");
        let mut far = header(2, 1, 2, 62);
        far[39] = 0xff;
        far[54] = PROGRAM_HEADER as u8;
        far[56] = 1;
        assert!(judged(&far).unwrap().1.contains("program headers would be past"));
    }

    #[test]
    fn a_missing_dynamic_linker_is_not_found() {
        let missing = judged(&with_linker(b"/no/ld.so\0", 10)).unwrap();
        assert_eq!(missing, (127, "its dynamic linker /no/ld.so does not exist".into()));
    }
}
