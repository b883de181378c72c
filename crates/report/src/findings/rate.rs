//! How often something happens, from how often it was seen to.

use serde::{Deserialize, Serialize};
use std::fmt;

/// So many hits in so many trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How often it happened.
    pub hits: u64,
    /// How often it was tried.
    pub trials: u64,
}

/// Between these proportions the rate lies, with a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// At least; 0 is never.
    pub low: f64,
    /// At most; 1 is always.
    pub high: f64,
}

impl Rate {
    /// Wilson's interval for the proportion; none where nothing was tried.
    pub fn interval(self) -> Option<Interval> {
        const Z: f64 = 1.96;
        if self.trials == 0 {
            return None;
        }
        let n = self.trials as f64;
        let p = self.hits as f64 / n;
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        // More digits would say nothing.
        let rounded = |share: f64| (share.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0;
        let (low, high) = (rounded((middle - half) / scale), rounded((middle + half) / scale));
        Some(Interval { low, high })
    }
}

impl fmt::Display for Rate {
    /// `12 of 20 (39-78 %)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.hits, self.trials)?;
        match self.interval() {
            Some(Interval { low, high }) => {
                write!(f, " ({:.0}-{:.0} %)", 100.0 * low, 100.0 * high)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let close = |hits, trials, expected: (f64, f64)| {
            let a = Rate { hits, trials }.interval().unwrap();
            let near = (a.low - expected.0).abs() < 0.002 && (a.high - expected.1).abs() < 0.002;
            assert!(near, "{a:?} {expected:?}");
        };
        close(10, 20, (0.299, 0.701));
        close(20, 20, (0.839, 1.0));
        close(0, 20, (0.0, 0.161));
        assert_eq!(Rate { hits: 12, trials: 20 }.to_string(), "12 of 20 (39-78 %)");
        let untried = Rate { hits: 0, trials: 0 };
        assert_eq!((untried.interval(), untried.to_string()), (None, "0 of 0".into()));
    }
}
