// SPDX-License-Identifier: PostgreSQL

//! Is the difference of two runs more than chance?
//!
//! Owns the paired statistics. The unit that is drawn is a cluster of questions, because questions about one thing are won and
//! lost together; a question without a cluster is one of its own. All draws come from one generator of a fixed seed, so the
//! same values give the same numbers.
//!
//! * **Randomisation** (Fisher; for retrieval: Smucker, Allan and Carterette, CIKM 2007, §3.1): under the null hypothesis each
//!   cluster's difference could as well have had the other sign. Up to 14 clusters that differ all signs are tried, else
//!   [`DRAWS`] at random; then p = (1 + as extreme) / (1 + draws) (Davison and Hinkley, Bootstrap Methods, §4.2.1), which is
//!   never 0.
//! * **Bootstrap** (Efron; for retrieval: Sakai, SIGIR 2006): clusters are drawn with replacement; the interval is that of the
//!   percentiles 2.5 and 97.5 of the mean difference, and p twice the smaller share on either side of 0.
//! * **Minimum detectable difference**: what a test of the level 5 % would find in four of five samples of this size,
//!   (1.960 + 0.842) · SE, with the bootstrap's standard error. A smaller true difference needs more questions.

use crate::error::Result;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::collections::BTreeMap;

/// Draws of each test.
pub const DRAWS: usize = 10_000;

/// Clusters up to which all signs are tried.
const EXACT: usize = 14;

/// 1.960 + 0.842: the quantiles of level 5 % on two sides and power 80 %.
const DETECTED: f64 = 2.802;

/// The values of one question in two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its cluster; questions of one name are drawn together.
    pub cluster: String,
    /// The value in the first run.
    pub first: f64,
    /// The value in the second.
    pub second: f64,
}

/// What the pairs say.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Questions.
    pub questions: usize,
    /// Clusters of them.
    pub clusters: usize,
    /// Mean of the first run.
    pub first: f64,
    /// Mean of the second.
    pub second: f64,
    /// Second minus first.
    pub difference: f64,
    /// Bootstrap interval of the difference, 95 %.
    pub interval: (f64, f64),
    /// Two-sided p by the bootstrap.
    pub p_bootstrap: f64,
    /// Two-sided p by randomisation.
    pub p_randomization: f64,
    /// Questions in which the second is better.
    pub wins: usize,
    /// Questions in which it is worse.
    pub losses: usize,
    /// The minimum detectable difference.
    pub detectable: f64,
}

/// Compares two runs by the values of their questions; `None` without a question. `interrupt` is asked between draws.
pub fn compare(pairs: &[Pair], interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Option<Difference>> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let mut clusters: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for pair in pairs {
        let of = clusters.entry(&pair.cluster).or_default();
        *of = (of.0 + (pair.second - pair.first), of.1 + 1.0);
    }
    // Differences of each cluster, summed, and its questions.
    let clusters: Vec<(f64, f64)> = clusters.into_values().collect();
    let questions = pairs.len() as f64;
    let mean = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / questions;
    let difference = clusters.iter().map(|(sum, _)| sum).sum::<f64>() / questions;
    let bootstrap = Bootstrap::of(&clusters, interrupt)?;
    Ok(Some(Difference {
        questions: pairs.len(),
        clusters: clusters.len(),
        first: mean(|p| p.first),
        second: mean(|p| p.second),
        difference,
        interval: bootstrap.interval,
        p_bootstrap: bootstrap.p,
        p_randomization: randomization(&clusters, interrupt)?,
        wins: pairs.iter().filter(|p| p.second > p.first).count(),
        losses: pairs.iter().filter(|p| p.second < p.first).count(),
        detectable: DETECTED * bootstrap.error,
    }))
}

fn generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0x0070_675F_7261_6721)
}

struct Bootstrap {
    interval: (f64, f64),
    p: f64,
    error: f64,
}

impl Bootstrap {
    fn of(clusters: &[(f64, f64)], interrupt: &mut dyn FnMut() -> Result<()>) -> Result<Self> {
        let mut random = generator();
        // An unbiased enough index: the high half of a product (Lemire, ACM TOMACS 2019), off by less than 2^-40 here.
        let mut index = || ((u128::from(random.next_u64()) * clusters.len() as u128) >> 64) as usize;
        let mut means: Vec<f64> = (0..DRAWS)
            .map(|_| {
                interrupt()?;
                let drawn = (0..clusters.len()).map(|_| clusters[index()]);
                let (sum, count) = drawn.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                Ok(sum / count)
            })
            .collect::<Result<_>>()?;
        means.sort_by(f64::total_cmp);
        let draws = DRAWS as f64;
        let average = means.iter().sum::<f64>() / draws;
        let error = (means.iter().map(|m| (m - average).powi(2)).sum::<f64>() / (draws - 1.0)).sqrt();
        let below = means.partition_point(|m| *m < 0.0);
        let not_above = means.partition_point(|m| *m <= 0.0);
        // Half of the draws at 0 count for each side.
        let at = (not_above - below) as f64 / 2.0;
        let side = (below as f64 + at).min((DRAWS - not_above) as f64 + at);
        let p = (2.0 * (side + 1.0) / (draws + 1.0)).min(1.0);
        Ok(Self { interval: (means[DRAWS / 40], means[DRAWS - 1 - DRAWS / 40]), p, error })
    }
}

fn randomization(clusters: &[(f64, f64)], interrupt: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let sums: Vec<f64> = clusters.iter().map(|(sum, _)| *sum).filter(|sum| *sum != 0.0).collect();
    let observed = sums.iter().sum::<f64>().abs();
    // Sums of the same numbers in another order may differ in their last bits.
    let extreme = |sum: f64| sum.abs() >= observed * (1.0 - 1e-12);
    if sums.len() <= EXACT {
        let signed = |signs: usize| -> f64 {
            sums.iter().enumerate().map(|(n, sum)| if signs >> n & 1 == 1 { -sum } else { *sum }).sum()
        };
        let all = 1_usize << sums.len();
        return Ok((0..all).filter(|signs| extreme(signed(*signs))).count() as f64 / all as f64);
    }
    let mut random = generator();
    let mut draw = || -> f64 {
        sums.chunks(64)
            .map(|some| {
                let signs = random.next_u64();
                let signed = |(n, sum): (usize, &f64)| if signs >> n & 1 == 1 { -sum } else { *sum };
                some.iter().enumerate().map(signed).sum::<f64>()
            })
            .sum()
    };
    let mut as_extreme = 0;
    for _ in 0..DRAWS {
        interrupt()?;
        as_extreme += usize::from(extreme(draw()));
    }
    Ok((as_extreme as f64 + 1.0) / (DRAWS as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(pairs: &[Pair]) -> Option<Difference> {
        super::compare(pairs, &mut || Ok(())).expect("not interrupted")
    }

    #[test]
    fn it_can_be_interrupted() {
        let mut draws = 0;
        let mut interrupt = || {
            draws += 1;
            if draws < 100 { Ok(()) } else { Err(crate::Error::internal("stop")) }
        };
        assert!(super::compare(&pairs((0..50).map(f64::from)), &mut interrupt).is_err());
        assert_eq!(draws, 100);
    }
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn pairs(differences: impl IntoIterator<Item = f64>) -> Vec<Pair> {
        let pair = |(n, d): (usize, f64)| Pair { cluster: n.to_string(), first: 0.5, second: 0.5 + d };
        differences.into_iter().enumerate().map(pair).collect()
    }

    #[test]
    fn small_samples_are_exact() {
        // All of five of one sign: 2 of 32 sign patterns are as extreme.
        let result = compare(&pairs([0.1, 0.2, 0.1, 0.3, 0.2])).expect("pairs");
        assert_eq!(result.p_randomization, 2.0 / 32.0);
        assert!((result.difference - 0.18).abs() < 1e-12);
        assert_eq!((result.wins, result.losses, result.questions), (5, 0, 5));
        // The sums of ±1 ±2 ±5 are ±8, ±6, ±4 and ±2: six of eight are as far from 0 as -1 + 2 - 5.
        let result = compare(&pairs([-0.1, 0.2, -0.5])).expect("pairs");
        assert_eq!(result.p_randomization, 6.0 / 8.0);
    }

    #[test]
    fn equal_runs_differ_by_nothing() {
        let result = compare(&pairs([0.0; 40])).expect("pairs");
        assert_eq!((result.difference, result.p_randomization, result.p_bootstrap), (0.0, 1.0, 1.0));
        assert_eq!((result.interval, result.detectable), ((0.0, 0.0), 0.0));
        assert_eq!(compare(&[]), None);
    }

    #[test]
    fn the_bootstrap_agrees_with_the_normal_law_on_many_questions() {
        // Differences of mean 0.02 and deviation 0.1 over 400 questions: SE 0.005, z = 4.
        let differences = (0..400).map(|n| 0.02 + if n % 2 == 0 { 0.1 } else { -0.1 });
        let result = compare(&pairs(differences)).expect("pairs");
        let (low, high) = result.interval;
        assert!((low - (0.02 - 1.96 * 0.005)).abs() < 0.001, "{low}");
        assert!((high - (0.02 + 1.96 * 0.005)).abs() < 0.001, "{high}");
        assert!((result.detectable - DETECTED * 0.005).abs() < 0.0005, "{}", result.detectable);
        assert!(result.p_bootstrap < 0.001 && result.p_randomization < 0.001);
    }

    #[test]
    fn one_cluster_of_many_questions_is_one_observation() {
        // Ninety questions about one thing are won together; the ten others differ by nothing of note.
        let pair = |n: usize| {
            let related = n < 90;
            let (cluster, second) = if related {
                ("one".to_owned(), 1.0)
            } else {
                (n.to_string(), 0.5 + if n.is_multiple_of(2) { 0.1 } else { -0.1 })
            };
            Pair { cluster, first: 0.5, second }
        };
        let clustered: Vec<Pair> = (0..100).map(pair).collect();
        let alone: Vec<Pair> =
            clustered.iter().enumerate().map(|(n, p)| Pair { cluster: n.to_string(), ..p.clone() }).collect();
        let (clustered, alone) = (compare(&clustered).expect("pairs"), compare(&alone).expect("pairs"));
        assert_eq!((clustered.clusters, alone.clusters), (11, 100));
        assert!(alone.p_randomization < 0.001, "{}", alone.p_randomization);
        // The cluster decides the sign of the sum, so it is as extreme where the ten others do not pull the other way: they
        // cancel out in C(10, 5) = 252 of 1024 patterns and help in half of the rest.
        assert_eq!(clustered.p_randomization, 638.0 / 1024.0);
        assert!((clustered.difference - alone.difference).abs() < 1e-12);
    }

    #[test]
    fn the_same_values_give_the_same_numbers() {
        let values = pairs((0..100).map(|n| f64::from(n % 7) / 10.0 - 0.29));
        assert_eq!(compare(&values), compare(&values));
    }

    /// Under the null hypothesis p must be as good as uniform: it is below 0.1 in a tenth of all samples.
    #[test]
    fn p_is_calibrated() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut normal = || (0..12).map(|_| random.next_u32() as f64 / f64::from(u32::MAX)).sum::<f64>() - 6.0;
        let (mut by_sign, mut by_bootstrap) = (0, 0);
        let samples = 100;
        for _ in 0..samples {
            let sample = pairs((0..30).map(|_| normal() / 10.0));
            let result = compare(&sample).expect("pairs");
            by_sign += u32::from(result.p_randomization < 0.1);
            by_bootstrap += u32::from(result.p_bootstrap < 0.1);
        }
        // 10 expected; four standard deviations are 12. The percentile bootstrap is known to be a little too sure.
        assert!((1..=22).contains(&by_sign), "{by_sign} of {samples}");
        assert!((1..=28).contains(&by_bootstrap), "{by_bootstrap} of {samples}");
    }

    proptest! {
        #[test]
        fn exchanging_the_runs_turns_the_sign(values in proptest::collection::vec((0u8..11, 0u8..11), 1..12)) {
            let forth: Vec<Pair> = values.iter().enumerate().map(|(n, (a, b))| Pair {
                cluster: n.to_string(), first: f64::from(*a) / 10.0, second: f64::from(*b) / 10.0 }).collect();
            let back: Vec<Pair> = forth.iter().map(|p| Pair { first: p.second, second: p.first, ..p.clone() }).collect();
            let (forth, back) = (compare(&forth).expect("pairs"), compare(&back).expect("pairs"));
            prop_assert_eq!(forth.p_randomization, back.p_randomization);
            prop_assert_eq!((forth.wins, forth.losses), (back.losses, back.wins));
            prop_assert!((forth.difference + back.difference).abs() < 1e-12);
            prop_assert!(forth.interval.0 <= forth.difference + 1e-9 && forth.difference <= forth.interval.1 + 1e-9);
        }
    }
}
