//! `SplitMix64`: the same numbers on every machine.

/// A source of numbers that the seed decides.
pub struct Random(u64);

impl Random {
    /// What `seed` and `number` decide together, so that every document can be made without those before it.
    pub fn of(seed: u64, number: usize) -> Self {
        let mut random = Self(seed ^ (number as u64).wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next()) * end as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `start` to `end`, both included.
    pub fn between(&mut self, start: usize, end: usize) -> usize {
        start + self.below(end - start + 1)
    }

    /// Any of `items`, all alike.
    pub fn any<'i, T: ?Sized>(&mut self, items: &[&'i T]) -> &'i T {
        items[self.below(items.len())]
    }

    /// One of `items`, the first ones more often, about as words are in a language: by Zipf's law.
    pub fn usual<'i, T: ?Sized>(&mut self, items: &[&'i T]) -> &'i T {
        let halvings = self.below(items.len().ilog2() as usize + 1);
        items[self.below((items.len() >> halvings).max(1))]
    }
}
