//! The part of a trace with most pauses: which ports pause which neighbours, and the ingress queues of
//! some of them.

use bufgym_sim::network::{
    IngressRow, IngressSampling, LeafSpine, Neighbour, OneSwitch, SwitchId, Topology,
};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PfcInterval;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::{floor_u64, index};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::PausesConfig;
use crate::entrant::{Entrant, Recording};
use crate::traces::{EvalError, NumberedTrace};

/// Length of the excerpt, in times that a port needs to drain a full buffer.
const DRAINS: f64 = 4.0;
/// Number of steps per length of the excerpt in the search for most pauses.
const STEPS: usize = 32;
/// Number of samples of ingress queues.
const SAMPLES: u64 = 240;
/// Number of queues whose pauses are shown.
const QUEUES: usize = 8;
/// Number of queues whose lengths are shown too.
const LENGTHS: usize = 2;

/// An excerpt of one trace at the same time under several policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PausesExcerpt {
    /// Index of the trace.
    pub trace: u64,
    /// Begin, milliseconds.
    pub start_ms: f64,
    /// Length, milliseconds.
    pub length_ms: f64,
    /// Ingress queues that pause in this time under some policy; the longest pauses first.
    pub queues: Vec<PausedQueue>,
    /// Number of queues that pause here and are not shown.
    pub others: usize,
    /// The policies.
    pub policies: Vec<PolicyExcerpt>,
}

/// An ingress queue that pauses its neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedQueue {
    /// The switch that pauses its neighbour.
    pub switch: u16,
    /// The port that leads to the neighbour.
    pub port: usize,
    /// The priority that is paused.
    pub priority: usize,
    /// Kind of the switch: `leaf` or `spine`, or `switch` if there is only one.
    pub kind: String,
    /// The paused neighbour, such as `host 3` or `leaf 1`.
    pub neighbour: String,
}

impl PausedQueue {
    /// Describes in words which port pauses which neighbour.
    pub fn name(&self) -> String {
        format!(
            "{} {}, port {} pauses {}, priority {}",
            self.kind, self.switch, self.port, self.neighbour, self.priority
        )
    }
}

/// The excerpt of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyExcerpt {
    /// The policy string.
    pub policy: String,
    /// Begin and end of the pauses of every queue of the excerpt, milliseconds.
    pub pauses: Vec<Vec<[f64; 2]>>,
    /// Lengths of the first queues.
    pub lengths: Vec<IngressSeries>,
}

/// An ingress queue in equal steps over the excerpt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IngressSeries {
    /// Length, headroom included, bytes.
    pub bytes: Vec<u64>,
    /// Bytes on headroom.
    pub headroom_bytes: Vec<u64>,
    /// The length that is compared with the threshold, which Reverie filters, bytes.
    pub compared_bytes: Vec<f64>,
    /// The threshold above which packets go to the headroom, bytes.
    pub threshold_bytes: Vec<f64>,
}

/// A switch, a port and a priority.
type Place = (SwitchId, usize, usize);

fn place_of(paused: &PfcInterval) -> Place {
    (paused.switch, paused.port, paused.priority)
}

/// A time window from begin to end.
#[derive(Clone, Copy)]
struct Window {
    from: Instant,
    to: Instant,
}

impl Window {
    /// Returns the part of a pause in the window; `None` if the pause lies outside.
    fn clip(self, paused: &PfcInterval) -> Option<(Instant, Instant)> {
        let from = paused.from.max(self.from);
        let to = paused.to.unwrap_or(self.to).min(self.to);
        (from < to).then_some((from, to))
    }

    /// Returns the window of a length in which the pauses together last longest; the middle one of the first
    /// run of equal ones.
    fn of_most(pauses: &[PfcInterval], length: Duration) -> Window {
        let step = (length / STEPS as u64).max(Duration(1));
        let step_of = |t: Instant| index(t.0 / step.0);
        let end = |paused: &PfcInterval| paused.to.unwrap_or(paused.from);
        let last = pauses.iter().map(end).max().unwrap_or(Instant::ZERO);
        let mut paused_in = vec![0u128; step_of(last) + 1];
        for paused in pauses {
            let steps = step_of(paused.from)..=step_of(end(paused));
            for (at, sum) in steps.clone().zip(&mut paused_in[steps]) {
                let begins = Instant::ZERO + step * at as u64;
                let within = Window {
                    from: begins,
                    to: begins + step,
                };
                let part = within.clip(paused).map_or(0, |(from, to)| (to - from).0);
                *sum += u128::from(part);
            }
        }
        let windows = paused_in.windows(STEPS.min(paused_in.len()));
        let sums: Vec<u128> = windows.map(|steps| steps.iter().sum()).collect();
        let most = sums.iter().max().copied().unwrap_or(0);
        let first = sums.iter().position(|sum| *sum == most).unwrap_or(0);
        let equal = sums[first..].iter().take_while(|sum| **sum == most);
        let middle = first + equal.count() / 2;
        let from = Instant::ZERO + step * middle as u64;
        Window {
            from,
            to: from + length,
        }
    }
}

/// Records the excerpt of a trace, on which all policies together have these pauses.
pub(super) fn of(
    config: &PausesConfig,
    numbered: &NumberedTrace,
    pauses: &[PfcInterval],
) -> Result<PausesExcerpt, EvalError> {
    let scenario = &config.scenario;
    let drain =
        8.0 * scenario.network.buffer_bytes as f64 / scenario.network.rate_bps.max(1) as f64;
    let length = Duration::from_secs_f64(DRAINS * drain).max(Duration(SAMPLES));
    let window = Window::of_most(pauses, length);
    let (places, others) = longest(pauses, window);
    let policies: Result<Vec<PolicyExcerpt>, EvalError> = config
        .entrants
        .par_iter()
        .map(|entrant| of_policy(scenario, entrant, numbered, (window, &places)))
        .collect();
    Ok(PausesExcerpt {
        trace: numbered.index,
        start_ms: window.from.as_ms_f64(),
        length_ms: length.as_ms_f64(),
        queues: places
            .iter()
            .map(|place| queue(scenario, numbered.seed, *place))
            .collect(),
        others,
        policies: policies?,
    })
}

/// Returns the queues that pause longest in the window, and the number of other queues that pause.
fn longest(pauses: &[PfcInterval], window: Window) -> (Vec<Place>, usize) {
    let mut sums: Vec<(Place, u64)> = Vec::new();
    for paused in pauses {
        let Some((from, to)) = window.clip(paused) else {
            continue;
        };
        let (place, part) = (place_of(paused), (to - from).0);
        match sums.iter_mut().find(|(other, _)| *other == place) {
            Some((_, sum)) => *sum += part,
            None => sums.push((place, part)),
        }
    }
    sums.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let others = sums.len().saturating_sub(QUEUES);
    let shown = sums.into_iter().take(QUEUES).map(|(place, _)| place);
    (shown.collect(), others)
}

fn queue(scenario: &Scenario, seed: u64, (switch, port, priority): Place) -> PausedQueue {
    let leaves = scenario.network.leaves as usize;
    let kind_of = |switch: SwitchId| match (scenario.is_fabric(), switch.index() < leaves) {
        (false, _) => "switch",
        (true, true) => "leaf",
        (true, false) => "spine",
    };
    let neighbour = match scenario.is_fabric() {
        true => LeafSpine::of(scenario, seed).neighbour(switch, port),
        false => OneSwitch {
            ports: scenario.port_count(),
        }
        .neighbour(switch, port),
    };
    PausedQueue {
        switch: switch.0,
        port,
        priority,
        kind: kind_of(switch).to_owned(),
        neighbour: match neighbour {
            Neighbour::Host(host) => format!("host {host}"),
            Neighbour::Switch(other) => format!("{} {}", kind_of(other), other.0),
        },
    }
}

fn of_policy(
    scenario: &Scenario,
    entrant: &Entrant,
    numbered: &NumberedTrace,
    (window, places): (Window, &[Place]),
) -> Result<PolicyExcerpt, EvalError> {
    let sampling = IngressSampling {
        from: window.from,
        to: window.to,
        interval: ((window.to - window.from) / SAMPLES).max(Duration(1)),
    };
    let recording = Recording {
        ingress: Some(sampling),
        ..Recording::default()
    };
    let outcome = entrant.watched(scenario, &numbered.trace, recording);
    let outcome = outcome.map_err(EvalError::simulation(entrant.name(), numbered))?;
    let of_place = |place: &Place| {
        let own = outcome.pauses.iter().filter(|p| place_of(p) == *place);
        let clipped = own.filter_map(|paused| window.clip(paused));
        let ends = clipped.map(|(from, to)| [from.as_ms_f64(), to.as_ms_f64()]);
        ends.collect()
    };
    let lengths = places.iter().take(LENGTHS);
    let lengths = lengths.map(|place| series(&outcome.ingress, *place, sampling));
    Ok(PolicyExcerpt {
        policy: entrant.name().to_owned(),
        pauses: places.iter().map(of_place).collect(),
        lengths: lengths.collect(),
    })
}

/// Returns the samples of one queue. The state is constant between samples.
fn series(rows: &[IngressRow], place: Place, sampling: IngressSampling) -> IngressSeries {
    let own = rows
        .iter()
        .filter(|row| (row.switch, row.queue.port, row.queue.priority) == place);
    let mut own = own.peekable();
    let mut series = IngressSeries::default();
    let mut state = None;
    for step in 0..SAMPLES {
        let t = sampling.from + sampling.interval * step;
        while let Some(row) = own.next_if(|row| row.t <= t) {
            state = Some(row.queue);
        }
        series.bytes.push(state.map_or(0, |s| s.bytes));
        series
            .headroom_bytes
            .push(state.map_or(0, |s| s.headroom_bytes));
        let compared = state.map_or(0.0, |s| s.compared_bytes);
        series.compared_bytes.push(compared);
        // The threshold that SONiC's ABM has for unscheduled packets exceeds any buffer.
        let threshold = state.map_or(0.0, |s| s.threshold_bytes).min(1e15);
        series.threshold_bytes.push(floor_u64(threshold) as f64);
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(port: usize, from: u64, to: Option<u64>) -> PfcInterval {
        PfcInterval {
            switch: SwitchId(0),
            port,
            priority: 3,
            from: Instant(from),
            to: to.map(Instant),
        }
    }

    #[test]
    fn the_window_lies_where_pauses_last_longest() {
        let pauses = [
            paused(0, 0, Some(1_000)),
            paused(0, 50_000, Some(52_000)),
            paused(1, 51_000, Some(52_000)),
        ];
        let window = Window::of_most(&pauses, Duration(3_200));
        assert!(window.from <= Instant(50_000) && window.to >= Instant(52_000));
        assert_eq!((window.to - window.from).0, 3_200);
        assert_eq!(
            longest(&pauses, window),
            (vec![(SwitchId(0), 0, 3), (SwitchId(0), 1, 3)], 0)
        );
        let first = longest(
            &pauses,
            Window {
                from: Instant(0),
                to: Instant(900),
            },
        );
        assert_eq!(first.0, [(SwitchId(0), 0, 3)]);
    }

    #[test]
    fn pauses_are_cut_at_the_ends() {
        let window = Window {
            from: Instant(100),
            to: Instant(200),
        };
        let clip = |from, to| window.clip(&paused(0, from, to)).map(|(a, b)| (a.0, b.0));
        assert_eq!(clip(50, Some(150)), Some((100, 150)));
        assert_eq!(clip(150, None), Some((150, 200)), "it lasts to the end");
        assert_eq!(clip(200, Some(300)), None);
        assert_eq!(clip(0, Some(100)), None);
    }
}
