//! Queues and thresholds of several policies in the busiest part of one trace.

use std::cmp::Reverse;

use bufgym_sim::network::TimelineRow;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::{floor_u64, index};
use rayon::prelude::*;

use crate::data::{BASELINE, Role, Timeline, TimelineSeries, TraceResult};
use crate::entrant::Entrant;
use crate::traces::{EvalError, NumberedTrace};

/// Number of bins of the excerpt.
const BINS: usize = 60;
/// Number of samples of the switch per bin.
const SAMPLES: u64 = 32;
/// Limit of the rows held for one policy. Longer traces are sampled at a longer interval.
const MAX_ROWS: u64 = 2_000_000;

/// Returns the excerpt of the trace on which DT drops most, among the traces with several destinations.
/// `None` if there is no such trace, or if there are several switches.
///
/// # Errors
/// Fails if a policy does not fit the scenario.
pub(crate) fn of_busiest_trace(
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[NumberedTrace],
    results: &[TraceResult],
) -> Result<Option<Timeline>, EvalError> {
    let Some((numbered, simulated_s)) = busiest_trace(traces, results) else {
        return Ok(None);
    };
    if scenario.is_fabric() {
        return Ok(None);
    }
    excerpt(scenario, &shown(entrants), numbered, simulated_s)
}

/// Returns the queues and thresholds of the policies `shown` at two ports, over the time when these ports are
/// busiest under DT. `simulated_s` is the length of the trace in seconds. `None` if DT is not among the
/// policies.
///
/// # Errors
/// Fails if a policy does not fit the scenario.
pub fn excerpt(
    scenario: &Scenario,
    shown: &[&Entrant],
    numbered: &NumberedTrace,
    simulated_s: f64,
) -> Result<Option<Timeline>, EvalError> {
    let bin = bin_width(scenario);
    let sample = sampling(scenario, bin, simulated_s);
    let rows: Result<Vec<Vec<TimelineRow>>, EvalError> = shown
        .par_iter()
        .map(|entrant| {
            let outcome = entrant.run(scenario, &numbered.trace, Some(sample));
            let rows = outcome.map(|outcome| outcome.timeline);
            rows.map_err(EvalError::simulation(entrant.name(), numbered))
        })
        .collect();
    let rows = rows?;
    let Some(reference) = shown.iter().position(|c| c.role() == Role::Baseline) else {
        return Ok(None);
    };
    let ports = longest_ports(&rows[reference], scenario.port_count());
    let first = busiest_window(&rows[reference], &ports, bin);
    let series = shown.iter().zip(&rows).flat_map(|(entrant, rows)| {
        ports
            .iter()
            .map(|&port| series(entrant.name(), rows, port, first, bin))
    });
    Ok(Some(Timeline {
        trace: numbered.index,
        start_ms: (bin * first as u64).as_ms_f64(),
        bin_ms: bin.as_ms_f64(),
        buffer_bytes: scenario.network.buffer_bytes,
        series: series.collect(),
    }))
}

/// Returns the trace with at least two destinations on which DT drops most, and its length in seconds.
fn busiest_trace<'a>(
    traces: &'a [NumberedTrace],
    results: &[TraceResult],
) -> Option<(&'a NumberedTrace, f64)> {
    let baseline = results
        .iter()
        .filter(|r| r.policy == BASELINE && r.failure.is_none());
    let dropping = baseline.filter(|r| r.drops > 0).filter_map(|r| {
        let numbered = traces.iter().find(|t| t.index == r.trace)?;
        let flows = &numbered.trace.flows;
        let several = flows.iter().any(|flow| flow.dst != flows[0].dst);
        several.then_some((r, numbered))
    });
    // The first of several equal maxima counts.
    let busiest = dropping.max_by_key(|(r, _)| (r.drops, Reverse(r.trace)));
    busiest.map(|(r, numbered)| (numbered, r.simulated_s))
}

/// Returns the time in which one port drains a full buffer, which is the time scale of queues.
fn bin_width(scenario: &Scenario) -> Duration {
    let seconds =
        8.0 * scenario.network.buffer_bytes as f64 / scenario.network.rate_bps.max(1) as f64;
    Duration::from_secs_f64(seconds).max(Duration(SAMPLES))
}

/// Returns the interval between samples.
fn sampling(scenario: &Scenario, bin: Duration, simulated_s: f64) -> Duration {
    let finest = bin / SAMPLES;
    let samples = u128::from(floor_u64(simulated_s / finest.as_secs_f64()));
    let rows = samples * u128::from(scenario.network.ports.max(1));
    let coarser = rows.div_ceil(u128::from(MAX_ROWS)).max(1);
    Duration(u64::try_from(u128::from(finest.0) * coarser).unwrap_or(u64::MAX))
}

/// Returns the policies to show: complete sharing, DT and two learned policies. Other rules replace missing
/// ones.
fn shown(entrants: &[Entrant]) -> Vec<&Entrant> {
    let named = |name: &str| entrants.iter().find(|c| c.name() == name);
    let of_role = |role: Role| entrants.iter().filter(move |c| c.role() == role);
    let mut shown: Vec<&Entrant> = named("cs").into_iter().chain(named(BASELINE)).collect();
    shown.extend(of_role(Role::Learned).take(2));
    let rules = of_role(Role::Heuristic).filter(|c| c.name() != "cs");
    shown.extend(rules.take(3usize.saturating_sub(shown.len())));
    shown
}

/// Returns the two ports with the longest queues at any time, in ascending order.
fn longest_ports(rows: &[TimelineRow], ports: usize) -> Vec<u32> {
    let mut peaks: Vec<(u64, u32)> = (0..).take(ports).map(|port| (0, port)).collect();
    for row in rows {
        if let Some(peak) = peaks.get_mut(row.port as usize) {
            peak.0 = peak.0.max(row.queue_bytes);
        }
    }
    peaks.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<u32> = peaks.iter().take(2).map(|(_, port)| *port).collect();
    chosen.sort_unstable();
    chosen
}

fn bin_of(t: Instant, bin: Duration) -> usize {
    index(t.0 / bin.0)
}

/// Returns the first of the [`BINS`] bins in which the ports are busiest at the same time: the sum over these
/// bins of the shorter queue is largest, or if equal, that of the longer queue.
fn busiest_window(rows: &[TimelineRow], ports: &[u32], bin: Duration) -> usize {
    let bins = rows.last().map_or(0, |row| bin_of(row.t, bin) + 1);
    let mut peaks = vec![0u64; bins * ports.len()];
    for row in rows {
        if let Some(place) = ports.iter().position(|port| *port == row.port) {
            let peak = &mut peaks[bin_of(row.t, bin) * ports.len() + place];
            *peak = (*peak).max(row.queue_bytes);
        }
    }
    let range = |bin: &[u64]| {
        let least = bin.iter().copied().min().unwrap_or(0);
        (least, bin.iter().copied().max().unwrap_or(0))
    };
    let busy: Vec<(u64, u64)> = peaks.chunks(ports.len().max(1)).map(range).collect();
    let windows = busy.windows(BINS.min(busy.len().max(1))).map(|window| {
        let add = |sum: (u64, u64), bin: &(u64, u64)| (sum.0 + bin.0, sum.1 + bin.1);
        window.iter().fold((0, 0), add)
    });
    let best = windows
        .enumerate()
        .max_by_key(|(first, busy)| (*busy, Reverse(*first)));
    best.map_or(0, |(first, _)| first)
}

/// Returns the bins of one port from bin `first` on. The state is constant between samples.
fn series(
    policy: &str,
    rows: &[TimelineRow],
    port: u32,
    first: usize,
    bin: Duration,
) -> TimelineSeries {
    let mut samples = rows.iter().filter(|row| row.port == port).peekable();
    let mut state = (0u64, 0u64);
    while let Some(row) = samples.next_if(|row| bin_of(row.t, bin) < first) {
        state = (row.queue_bytes, row.threshold_bytes);
    }
    let mut series = TimelineSeries {
        policy: policy.to_string(),
        port,
        max_queue_bytes: Vec::with_capacity(BINS),
        mean_queue_bytes: Vec::with_capacity(BINS),
        min_threshold_bytes: Vec::with_capacity(BINS),
    };
    for index in first..first + BINS {
        let start = Instant::ZERO + bin * index as u64;
        let (mut longest, mut lowest, mut area, mut since) = (state.0, state.1, 0.0, start);
        while let Some(row) = samples.next_if(|row| bin_of(row.t, bin) == index) {
            area += state.0 as f64 * (row.t - since).0 as f64;
            since = row.t;
            state = (row.queue_bytes, row.threshold_bytes);
            longest = longest.max(state.0);
            lowest = lowest.min(state.1);
        }
        area += state.0 as f64 * (start + bin - since).0 as f64;
        series.max_queue_bytes.push(longest);
        series.mean_queue_bytes.push(area / bin.0 as f64);
        series.min_threshold_bytes.push(lowest);
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_sim::switch::SwitchId;

    const BIN: Duration = Duration(100);

    fn row(t: u64, port: u32, queue: u64, threshold: u64) -> TimelineRow {
        TimelineRow {
            switch: SwitchId(0),
            t: Instant(t),
            port,
            queue_bytes: queue,
            threshold_bytes: threshold,
            occupancy_bytes: queue,
            alpha: 1.0,
        }
    }

    #[test]
    fn the_longest_trace_has_as_many_rows_as_are_held() {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = 4_096;
        });
        for simulated_s in [1.0, 1e3, 1e6] {
            let interval = sampling(&scenario, Duration(SAMPLES), simulated_s).as_secs_f64();
            let rows = simulated_s * 4_096.0 / interval;
            assert!(
                (0.9..1.000_001).contains(&(rows / MAX_ROWS as f64)),
                "{rows}"
            );
        }
    }

    #[test]
    fn a_bin_holds_the_longest_queue_the_mean_and_the_lowest_threshold() {
        let rows = [row(0, 0, 10, 90), row(50, 0, 30, 70), row(120, 0, 0, 100)];
        let series = series("dt", &rows, 0, 0, BIN);
        assert_eq!(series.max_queue_bytes[..3], [30, 30, 0]);
        assert_eq!(series.mean_queue_bytes[..3], [20.0, 6.0, 0.0]);
        assert_eq!(series.min_threshold_bytes[1..3], [70, 100]);
        assert_eq!(series.max_queue_bytes.len(), BINS);
    }

    #[test]
    fn the_state_before_the_window_carries_over() {
        let rows = [row(10, 0, 40, 60)];
        let series = series("dt", &rows, 0, 3, BIN);
        assert!(series.max_queue_bytes.iter().all(|q| *q == 40));
        assert!(series.min_threshold_bytes.iter().all(|t| *t == 60));
    }

    #[test]
    fn the_ports_with_the_longest_queues_come_in_order() {
        let rows = [row(0, 2, 5, 0), row(0, 0, 9, 0), row(0, 1, 1, 0)];
        assert_eq!(longest_ports(&rows, 4), [0, 2]);
        assert_eq!(longest_ports(&rows, 1), [0]);
    }

    #[test]
    fn the_window_starts_where_most_is_queued() {
        let mut rows: Vec<TimelineRow> = (0..200).map(|b| row(b * 100, 0, 0, 0)).collect();
        rows[100..160]
            .iter_mut()
            .for_each(|row| row.queue_bytes = 7);
        assert_eq!(busiest_window(&rows, &[0], BIN), 100);
        rows[30].queue_bytes = 1;
        rows.extend((0..200).map(|b| row(b * 100, 1, u64::from(b == 30), 0)));
        rows.sort_by_key(|row| row.t);
        assert_eq!(busiest_window(&rows, &[0, 1], BIN), 0, "both ports at once");
        assert_eq!(busiest_window(&[], &[0], BIN), 0);
    }
}
