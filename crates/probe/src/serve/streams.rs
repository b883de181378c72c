//! The standard streams, which all copies share: what one of them has changed is changed back before
//! the next.

use crate::memory::kernel;

/// The state of each as the target came to `main`; absent where it is closed.
#[derive(Debug)]
pub struct Streams([Option<i32>; 3]);

impl Streams {
    /// As they are now.
    pub fn now() -> Streams {
        Streams([0, 1, 2].map(|descriptor| Some(kernel::flags_of(descriptor)).filter(|f| *f >= 0)))
    }

    /// Makes them so again: that they do not block, for one, holds for everybody.
    pub fn restore(&self) {
        for (descriptor, flags) in self.0.iter().enumerate() {
            if let Some(flags) = *flags
                && kernel::flags_of(descriptor as i32) != flags
            {
                let what = libc::F_SETFL as u64;
                kernel::call(libc::SYS_fcntl, [descriptor as u64, what, flags as u64, 0, 0, 0]);
            }
        }
    }
}
