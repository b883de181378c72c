//! How often something happens, from how often it was seen to.

use std::fmt;

/// So many hits in so many trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How often it happened.
    pub hits: u64,
    /// How often it was tried.
    pub trials: u64,
}

impl Rate {
    /// Wilson's interval for the proportion, at 95 %.
    fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.96;
        let n = self.trials.max(1) as f64;
        let p = self.hits as f64 / n;
        let middle = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
    }
}

impl fmt::Display for Rate {
    /// `12 of 20 (39-78 %)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.interval();
        write!(f, "{} of {} ({:.0}-{:.0} %)", self.hits, self.trials, 100.0 * low, 100.0 * high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let close = |hits, trials, expected: (f64, f64)| {
            let a = Rate { hits, trials }.interval();
            let near = (a.0 - expected.0).abs() < 0.002 && (a.1 - expected.1).abs() < 0.002;
            assert!(near, "{a:?} {expected:?}");
        };
        close(10, 20, (0.299, 0.701));
        close(20, 20, (0.839, 1.0));
        close(0, 20, (0.0, 0.161));
        assert_eq!(Rate { hits: 12, trials: 20 }.to_string(), "12 of 20 (39-78 %)");
    }
}
