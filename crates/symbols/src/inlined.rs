//! Inlined instances of hooked functions: which atomic instructions they left behind.
//!
//! Rust's `Mutex::lock` is never called: its `lock cmpxchg` stands in the middle of the program.
//! Debug information says which instructions came from it, and those instructions get the hook. An
//! instruction inside several such instances belongs to the innermost.

use crate::code;
use crate::elf::Image;
use crate::instances::Instance;
use std::collections::BTreeMap;

/// Addresses of atomic instructions, each with its hook; `hook` says which one an instance means.
pub(crate) fn atomic_instructions<M: Copy>(
    image: &Image,
    instances: &[Instance<M>],
    hook: impl Fn(M) -> Option<u32>,
) -> BTreeMap<u64, u32> {
    let mut found: BTreeMap<u64, (isize, u32)> = BTreeMap::new();
    for instance in instances.iter().filter(|instance| instance.inlined) {
        let Some(hook) = hook(instance.mark) else { continue };
        for range in &instance.ranges {
            let Some(bytes) = image.code_range(range) else { continue };
            for address in code::atomic_instructions(bytes, range.start) {
                let claim = (instance.depth, hook);
                let holder = found.entry(address).or_insert(claim);
                *holder = claim.max(*holder);
            }
        }
    }
    found.into_iter().map(|(address, (_, hook))| (address, hook)).collect()
}
