//! Tests of the order: balanced, and the same for the same seed.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn arms_of(block: &Block) -> Vec<usize> {
    let mut arms: Vec<usize> = block.slots.iter().map(|slot| slot.arm).collect();
    arms.dedup();
    arms
}

proptest! {
    #[test]
    fn every_block_visits_every_arm_once_and_measures_every_cell(
        (arms, cells, blocks, seed) in (1_usize..6, 1_usize..5, 1_u32..9, any::<u64>())
    ) {
        let made = visits(arms, cells, blocks, seed);
        prop_assert_eq!(&made, &visits(arms, cells, blocks, seed));
        prop_assert_eq!(&made[..], &visits(arms, cells, blocks + 3, seed)[..blocks as usize]);
        for (number, block) in made.iter().enumerate() {
            prop_assert_eq!(arms_of(block).len(), arms);
            let each: BTreeSet<(usize, usize)> =
                block.slots.iter().map(|slot| (slot.arm, slot.cell)).collect();
            prop_assert_eq!(each.len(), arms * cells);
            prop_assert_eq!(block.slots.len(), arms * cells);
            prop_assert!(block.slots.iter().all(|slot| slot.block as usize == number));
        }
        // Over two blocks every arm has the same middle place, so a steady drift falls on all alike.
        for two in made.chunks_exact(2) {
            let both = [arms_of(&two[0]), arms_of(&two[1])].concat();
            for arm in 0..arms {
                let places: usize = (0..2 * arms).filter(|place| both[*place] == arm).sum();
                prop_assert_eq!(places, 2 * arms - 1);
            }
        }
    }

    #[test]
    fn interleaved_arms_come_first_as_often_as_last_in_each_cell(
        (arms, cells, blocks, seed) in (2_usize..5, 1_usize..4, 1_u32..5, any::<u64>())
    ) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut order = Interleaved::new((0..arms).collect(), 0..cells);
        let mut places: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut repeated = Vec::new();
        for block in 0..2 * blocks {
            let slots = order.block(block, &mut rng);
            for cell in 0..cells {
                let measured = slots.iter().filter(|slot| slot.cell == cell && !slot.repeat);
                let measured: Vec<usize> = measured.map(|slot| slot.arm).collect();
                prop_assert_eq!(measured.iter().collect::<BTreeSet<_>>().len(), arms);
                for (place, arm) in measured.into_iter().enumerate() {
                    *places.entry((cell, arm)).or_default() += place;
                }
            }
            repeated.extend(slots.into_iter().filter(|slot| slot.repeat));
        }
        let fair = blocks as usize * (arms - 1);
        prop_assert!(places.values().all(|sum| *sum == fair), "{:?}", places);
        prop_assert_eq!(repeated.len(), 2 * blocks as usize);
    }
}

#[test]
fn two_arms_are_abba_or_baab_by_chance() {
    let mut firsts = BTreeSet::new();
    for seed in 0..20 {
        let made = visits(2, 1, 6, seed);
        for four in made.chunks(2) {
            let order: Vec<usize> = four.iter().flat_map(arms_of).collect();
            assert!(order[1] == order[2] && order[0] == order[3] && order[0] != order[1]);
            firsts.insert(order[0]);
        }
    }
    assert_eq!(firsts.len(), 2);
}
