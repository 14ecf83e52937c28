//! Flows on ideal senders: links shared by rule, without queues, losses and slow starts.
//!
//! A flow has two links, that of its sender's interface and that of its receiver's port, and both have the
//! rate of the scenario. Between two events (a flow starts or ends) every flow has a constant rate. So a
//! trace is computed exactly and without packets: per event O(links · flows in progress) for fair shares, and
//! O(n log n) for n flows in progress for the shortest first.
//!
//! These are scales. No buffer policy can make senders fair to each other at once, and none knows how many
//! bytes a flow has left.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Instant;
use bufgym_util::convert::index;

use super::Outcome;

/// The rule by which flows share the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All flows alike: max-min fair rates (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2).
    Fair,
    /// The flow with the fewest bytes left first, on both of its links; then the next of those whose links
    /// are free (the ideal that Alizadeh et al., pFabric, SIGCOMM 2013, section 3, compare with).
    ShortestFirst,
}

/// A flow in progress.
struct Transfer {
    /// Indices of the two links.
    links: [usize; 2],
    start: f64,
    /// Seconds that the link needs for the rest.
    left: f64,
    /// Share of the link.
    rate: f64,
}

/// Rest at which a flow counts as done, seconds of its link: far below a bit at any rate, and far above
/// rounding errors.
const DONE: f64 = 1e-13;

/// Returns the mean FCT of the flows of a trace, and their goodput. An FCT extends from the start of a flow
/// until its last byte has arrived, with headers and the propagation delay of two links, but without a
/// handshake. `None` for a trace without flows.
///
/// # Panics
/// Panics if a trace has a host that the scenario does not have.
pub(super) fn outcome(scenario: &Scenario, trace: &Trace, sharing: Sharing) -> Option<Outcome> {
    let hosts = scenario.port_count();
    let mut waiting: Vec<(Instant, usize)> = trace
        .flows
        .iter()
        .enumerate()
        .map(|(number, flow)| (flow.start, number))
        .collect();
    waiting.sort_unstable();
    let mut waiting = waiting.into_iter().peekable();
    let mut active: Vec<Transfer> = Vec::new();
    let (mut now, mut total) = (0.0, 0.0);
    loop {
        if active.is_empty() {
            match waiting.peek() {
                Some((start, _)) => now = start.as_secs_f64(),
                None => break,
            }
        }
        while let Some((start, number)) = waiting.next_if(|(start, _)| start.as_secs_f64() <= now) {
            let flow = &trace.flows[number];
            active.push(Transfer {
                links: [
                    index(u64::from(flow.src)),
                    hosts + index(u64::from(flow.dst)),
                ],
                start: start.as_secs_f64(),
                left: wire_bits(scenario, flow.size) / scenario.network.rate_bps as f64,
                rate: 0.0,
            });
        }
        match sharing {
            Sharing::Fair => share_fairly(&mut active, 2 * hosts),
            Sharing::ShortestFirst => serve_shortest(&mut active, 2 * hosts),
        }
        let next_start = waiting.peek().map(|(start, _)| start.as_secs_f64() - now);
        let ends = active.iter().filter(|flow| flow.rate > 0.0);
        let step = ends
            .map(|flow| flow.left / flow.rate)
            .chain(next_start)
            .fold(f64::INFINITY, f64::min);
        now += step;
        for flow in &mut active {
            flow.left -= flow.rate * step;
        }
        active.retain(|flow| {
            let ended = flow.left <= DONE;
            total += if ended { now - flow.start } else { 0.0 };
            !ended
        });
    }
    let latency = 2.0 * scenario.propagation().as_secs_f64();
    let first_start = trace.flows.iter().map(|flow| flow.start).min()?;
    let bytes: u64 = trace.flows.iter().map(|flow| flow.size).sum();
    Some(Outcome {
        mean_fct_ms: 1e3 * (total / trace.flows.len() as f64 + latency),
        goodput_bps: 8.0 * bytes as f64 / (now + latency - first_start.as_secs_f64()),
    })
}

fn wire_bits(scenario: &Scenario, size: u64) -> f64 {
    let packets = size.div_ceil(u64::from(scenario.packets.mss)) as f64;
    let full = scenario.full_packet_bytes() + u64::from(scenario.packets.overhead_bytes);
    let headers = full - u64::from(scenario.packets.mss);
    8.0 * (size as f64 + packets * headers as f64)
}

/// Fills the link with the least share per flow, fixes the rates of its flows, and continues with the rest.
fn share_fairly(active: &mut [Transfer], links: usize) {
    let (mut capacity, mut flows) = (vec![1.0_f64; links], vec![0_u32; links]);
    for flow in active.iter_mut() {
        flow.rate = f64::NAN;
        for link in flow.links {
            flows[link] += 1;
        }
    }
    let share = |capacity: &[f64], flows: &[u32], link: usize| {
        (flows[link] > 0).then(|| (capacity[link] / f64::from(flows[link])).max(0.0))
    };
    loop {
        let shares = (0..links).filter_map(|link| Some((share(&capacity, &flows, link)?, link)));
        let Some((rate, tightest)) = shares.min_by(|(a, _), (b, _)| a.total_cmp(b)) else {
            return;
        };
        for flow in active.iter_mut() {
            if flow.rate.is_nan() && flow.links.contains(&tightest) {
                flow.rate = rate;
                for link in flow.links {
                    capacity[link] -= rate;
                    flows[link] -= 1;
                }
            }
        }
    }
}

fn serve_shortest(active: &mut [Transfer], links: usize) {
    active.sort_by(|a, b| a.left.total_cmp(&b.left));
    let mut taken = vec![false; links];
    for flow in active {
        let free = flow.links.iter().all(|&link| !taken[link]);
        flow.rate = f64::from(u8::from(free));
        for link in flow.links {
            taken[link] |= free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_sim::traffic::FlowSpec;

    /// Returns a scenario with 1 Gbit/s and 1,000 bytes of payload per packet without headers: a million
    /// bytes take 8 ms.
    fn scenario() -> Scenario {
        let mut scenario = Scenario::default();
        for setting in ["mss=1000", "header_bytes=0", "propagation_ns=0"] {
            scenario.set(setting).unwrap();
        }
        scenario
    }

    fn trace(flows: &[(u32, u32, u64, u64)]) -> Trace {
        let flow = |(id, &(src, dst, start_ms, size)): (usize, &(u32, u32, u64, u64))| FlowSpec {
            id: id as u64,
            src,
            dst,
            start: Instant::from_ms(start_ms),
            size,
            kind: 0,
            query: -1,
            priority: 0,
        };
        Trace {
            flows: flows.iter().enumerate().map(flow).collect(),
            ..Trace::default()
        }
    }

    fn both(flows: &[(u32, u32, u64, u64)]) -> [f64; 2] {
        let scenario = scenario();
        [Sharing::Fair, Sharing::ShortestFirst].map(|sharing| {
            let outcome = outcome(&scenario, &trace(flows), sharing).unwrap();
            outcome.mean_fct_ms * flows.len() as f64
        })
    }

    fn assert_sums(flows: &[(u32, u32, u64, u64)], sums: [f64; 2]) {
        for (found, expected) in both(flows).into_iter().zip(sums) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn a_flow_alone_has_its_link() {
        assert_sums(&[(0, 1, 5, 1_000_000)], [8.0, 8.0]);
        // Two directions, and the links of other hosts, are separate links.
        assert_sums(&[(0, 1, 0, 1_000_000), (1, 0, 0, 1_000_000)], [16.0, 16.0]);
    }

    /// Computed manually: 1 MB and 2 MB to one port, together. Fair: the first ends at 16 ms, the second at
    /// 24 ms.
    #[test]
    fn two_flows_share_a_port() {
        assert_sums(
            &[(0, 2, 0, 1_000_000), (1, 2, 0, 2_000_000)],
            [40.0, 8.0 + 24.0],
        );
    }

    /// Computed manually: flows A 0→2 and B 1→2 share port 2, C 1→3 shares B's interface. All rates are 1/2,
    /// and when A (0.5 MB) is done at 8 ms, C still halves B's interface.
    #[test]
    fn a_flow_has_the_share_of_its_tightest_link() {
        let flows = [
            (0, 2, 0, 500_000),
            (1, 2, 0, 1_000_000),
            (1, 3, 0, 1_000_000),
        ];
        // Shortest first: A, then B and C one after the other; C has its links free while A is served.
        assert_sums(&flows, [8.0 + 16.0 + 16.0, 4.0 + 16.0 + 8.0]);
    }

    /// A shorter flow that comes later takes the link from a longer one.
    #[test]
    fn a_shorter_flow_comes_first() {
        let flows = [(0, 2, 0, 2_000_000), (1, 2, 4, 500_000)];
        assert_sums(&flows, [20.0 + 8.0, 20.0 + 4.0]);
    }

    /// Computed manually: 2 MB and, 4 ms later, 0.5 MB to one port, which is busy until 20 ms. Then 3 MB from
    /// 30 ms to 54 ms at another port.
    #[test]
    fn goodput_is_from_the_first_start_to_the_last_end() {
        let flows = [
            (0, 2, 1, 2_000_000),
            (1, 2, 5, 500_000),
            (1, 3, 31, 3_000_000),
        ];
        for sharing in [Sharing::Fair, Sharing::ShortestFirst] {
            let goodput = outcome(&scenario(), &trace(&flows), sharing)
                .unwrap()
                .goodput_bps;
            assert!(
                (goodput / (8.0 * 5_500_000.0 / 0.054) - 1.0).abs() < 1e-9,
                "{goodput}"
            );
        }
    }

    #[test]
    fn headers_and_latency_count() {
        let mut scenario = Scenario::default();
        scenario.set("overhead_bytes=0").unwrap();
        assert!(!scenario.tcp.timestamps);
        let bits = wire_bits(&scenario, 2 * u64::from(scenario.packets.mss) + 1);
        let bytes =
            2 * u64::from(scenario.packets.mss) + 1 + 3 * u64::from(scenario.packets.header_bytes);
        assert_eq!(bits, 8.0 * bytes as f64);
        let alone = outcome(&scenario, &trace(&[(0, 1, 0, 1)]), Sharing::Fair).unwrap();
        let wire = 8e3 * (1.0 + f64::from(scenario.packets.header_bytes))
            / scenario.network.rate_bps as f64;
        let latency = 2e3 * scenario.propagation().as_secs_f64();
        assert!((alone.mean_fct_ms - wire - latency).abs() < 1e-9);
        assert!((alone.goodput_bps / (8e3 / (wire + latency)) - 1.0).abs() < 1e-9);
        assert_eq!(outcome(&scenario, &trace(&[]), Sharing::Fair), None);
    }
}
