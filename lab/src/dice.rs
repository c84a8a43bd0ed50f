//! Random numbers from a seed (splitmix64), the same on every machine and with every version of a library.

/// The concern of a seed's first dice: the script, and everything in the world without dice of its own.
pub(crate) const WORLD: &str = "";

/// Random numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct SeededDice(u64);

impl SeededDice {
    #[cfg(test)]
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(seed, WORLD)
    }

    /// The dice of one concern of a seed's world, named by a word. A kind of fault that is added later draws
    /// from dice of its own, so that worlds in which it does not happen stay as they were.
    pub(crate) fn of(seed: u64, concern: &str) -> Self {
        let mix = |dice: Self, byte: u8| Self(Self(dice.0 ^ u64::from(byte)).next());
        concern.bytes().fold(Self(seed), mix)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below a bound; 0 for the bounds 0 and 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A random index into a list of that length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Milliseconds between two bounds, the upper one not included.
    pub(crate) fn ms(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.below(to.abs_diff(from))).unwrap_or(0)
    }

    /// True with a probability of `per_mille` in a thousand.
    pub(crate) fn hits(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// New dice, seeded with one number drawn from these.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_concern_has_dice_of_its_own_and_the_world_those_of_the_seed() {
        let drawn = |mut dice: SeededDice| [dice.below(u64::MAX), dice.below(u64::MAX)];
        let (world, clock) = (SeededDice::of(7, WORLD), SeededDice::of(7, "clock"));
        assert_eq!(drawn(world), drawn(SeededDice(7)));
        assert_eq!(drawn(clock.clone()), drawn(SeededDice::of(7, "clock")));
        for other in [
            SeededDice(7),
            SeededDice::of(7, "clocks"),
            SeededDice::of(8, "clock"),
        ] {
            assert_ne!(drawn(clock.clone()), drawn(other));
        }
    }
}
