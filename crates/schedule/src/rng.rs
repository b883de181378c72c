//! Pseudo-random numbers: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). Ours, so that a seed means the same
//! forever and on every machine.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of a seed, for one purpose. The seed is hashed first: streams of neighbouring
    /// seeds would otherwise be the same stream, shifted.
    pub fn new(seed: u64, purpose: u64) -> Rng {
        Rng(mix(mix(seed.wrapping_add(STEP)) ^ mix(purpose.wrapping_mul(STEP) ^ 0x5DEE_CE66_D123)))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Below `bound`, which must not be zero; the bias is below 2^-32 for the bounds we use.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Either.
    pub fn coin(&mut self) -> bool {
        self.draw() >> 63 == 1
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        from.get(self.below(from.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_seeds_are_not_alike() {
        // Of 64 bits of the first number, a neighbour's differ in about half.
        for seed in 0..200 {
            let (a, b) = (Rng::new(seed, 0).draw(), Rng::new(seed + 1, 0).draw());
            assert!((14..=50).contains(&(a ^ b).count_ones()), "{seed}");
            assert_ne!(Rng::new(seed, 0).draw(), Rng::new(seed, 1).draw());
        }
    }

    #[test]
    fn all_are_picked_about_equally() {
        let mut rng = Rng::new(7, 0);
        let mut seen = [0; 5];
        for _ in 0..50_000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(rng.pick::<u8>(&[]), None);
    }
}
