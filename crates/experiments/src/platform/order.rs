//! The order of trials: drawn from the seed for each block of each cell, so that a run that goes on later has
//! the same one, whichever cells it measured meanwhile.

use untax_trials::{Block, Slot};

/// The block of a cell with these arms, by their places in the design, in random order. Every second block has
/// the order of the block before reversed, so that each arm comes as often early as late.
pub(crate) fn block(seed: u64, cell: usize, number: u32, arms: &[usize]) -> Block {
    // Any odd constant keeps cells and pairs of blocks apart; this is the golden ratio's, as usual.
    let draw = (cell as u64) << 32 | u64::from(number / 2);
    let mut rng = fastrand::Rng::with_seed(seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut arms = arms.to_vec();
    rng.shuffle(&mut arms);
    if !number.is_multiple_of(2) {
        arms.reverse();
    }
    let slot = |arm| Slot { block: number, arm, cell, repeat: false };
    Block { together: Vec::new(), slots: arms.into_iter().map(slot).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms(cell: usize, number: u32) -> Vec<usize> {
        block(7, cell, number, &[0, 1, 2, 3, 4]).slots.iter().map(|slot| slot.arm).collect()
    }

    #[test]
    fn an_order_depends_on_seed_cell_and_block_alone_and_is_reversed_once() {
        assert_eq!(arms(1, 4), arms(1, 4));
        let mut reversed = arms(1, 5);
        reversed.reverse();
        assert_eq!(reversed, arms(1, 4));
        let first: Vec<Vec<usize>> = (0..20).map(|number| arms(0, 2 * number)).collect();
        assert!(first.iter().any(|order| order != &first[0]), "always {first:?}");
        assert!((0..20).any(|cell| arms(cell, 0) != arms(0, 0)));
    }

    #[test]
    fn each_arm_comes_first_about_as_often_as_last() {
        let (mut first, mut last) = ([0; 5], [0; 5]);
        for cell in 0..40 {
            for number in 0..10 {
                let arms = arms(cell, number);
                first[arms[0]] += 1;
                last[arms[4]] += 1;
            }
        }
        assert_eq!(first, last);
        assert!(first.iter().all(|count| (40..120).contains(count)), "{first:?}");
    }
}
