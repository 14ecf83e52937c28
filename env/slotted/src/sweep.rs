//! Credence, Appendix D, Figure 14: throughput against the quality of predictions.

use bufgym_util::rng;
use rayon::prelude::*;
use serde::Serialize;

use super::oracle::{drops_of_lqd, flipped};
use super::policy::{Credence, FollowLqd};
use super::spec::ORACLE_STREAM;
use super::{Arrivals, Counts, NoObserver, Outcome, Packet, PolicySpec, SlottedError, Switch, run};

/// Throughput of LQD divided by that of each policy; 1 is as good as LQD, more is worse.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure14 {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that LQD transmitted.
    pub lqd_transmitted: u64,
    /// Share of the arrivals that LQD lost.
    pub lqd_loss: f64,
    /// LQD/DT.
    pub dt: f64,
    /// LQD/CS.
    pub cs: f64,
    /// LQD/Harmonic.
    pub harmonic: f64,
    /// Credence at every probability of a false prediction, in ascending order.
    pub credence: Vec<Point>,
}

/// Credence at one probability of a false prediction.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    /// The probability.
    pub flip: f64,
    /// LQD/Credence.
    pub ratio: f64,
    /// The error function η of Definition 1: LQD/FollowLQD without the packets that are predicted
    /// to be dropped.
    pub eta: f64,
}

/// Runs LQD, Credence at every probability in `flips`, and `dt`, CS and Harmonic on the same
/// arrivals. The same probabilities and `seed` give the same result on any number of threads.
///
/// # Errors
/// Arrivals that are not unit packets or do not fit the switch.
pub fn figure14(
    switch: &Switch,
    arrivals: &Arrivals,
    dt: PolicySpec,
    flips: &[f64],
    seed: u64,
) -> Result<Figure14, SlottedError> {
    let lqd = PolicySpec::LongestQueueDrop.run(switch, arrivals, seed, false)?;
    let ratio = |outcome: Outcome| lqd.transmitted as f64 / outcome.transmitted as f64;
    let of = |policy: PolicySpec| policy.run(switch, arrivals, seed, false).map(ratio);
    let drops = drops_of_lqd(switch, arrivals.packets())?;
    let credence = flips
        .par_iter()
        .map(|flip| {
            let predicted = flipped(&drops, *flip, rng::stream(seed, ORACLE_STREAM, 0));
            let kept = without(arrivals.packets(), &predicted);
            let follower = simulate(switch, FollowLqd::new(switch), &kept)?;
            let own = simulate(switch, Credence::new(switch, predicted), arrivals.packets())?;
            Ok(Point {
                flip: *flip,
                ratio: ratio(own),
                eta: ratio(follower),
            })
        })
        .collect::<Result<Vec<_>, SlottedError>>()?;
    Ok(Figure14 {
        arrived: lqd.arrived,
        lqd_transmitted: lqd.transmitted,
        lqd_loss: 1.0 - lqd.transmitted as f64 / lqd.arrived as f64,
        dt: of(dt)?,
        cs: of(PolicySpec::CompleteSharing)?,
        harmonic: of(PolicySpec::Harmonic)?,
        credence,
    })
}

fn simulate(
    switch: &Switch,
    mut policy: impl super::policy::Policy,
    packets: &[Packet],
) -> Result<Outcome, SlottedError> {
    let mut queues = Counts::new(switch);
    run(&mut queues, &mut policy, packets, None, &mut NoObserver)
}

fn without(packets: &[Packet], lost: &[bool]) -> Vec<Packet> {
    packets
        .iter()
        .zip(lost)
        .filter(|(_, lost)| !**lost)
        .map(|(packet, _)| *packet)
        .collect()
}
