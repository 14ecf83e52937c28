//! The base time that a flow's completion time is compared with.

use super::isolated::{BaseFlow, IsolatedFlow};
use crate::scenario::{AckQueue, Ecmp, Scenario, SlowdownBase, TransportKind};
use crate::units::{Duration, Rate};

/// Completion times that slowdowns are relative to, by size and path.
#[derive(Clone, Debug)]
pub struct BaseTime {
    base: SlowdownBase,
    alone: IsolatedFlow,
    pipeline: Pipeline,
    /// Round-trip time of the longest path, propagation only.
    round_trip: Duration,
    reverie: Reverie,
    rate: Rate,
}

/// Base time of Reverie (NSDI 2024): the longest round trip of a full packet without headers, plus
/// the time of the flow on the line of a host, for RDMA with headers.
#[derive(Clone, Copy, Debug)]
struct Reverie {
    round_trip: Duration,
    mss: u64,
    rdma_header: u64,
    rate: Rate,
}

impl Reverie {
    fn new(scenario: &Scenario) -> Reverie {
        let payload = scenario
            .rate()
            .transmission_time(u64::from(scenario.packets.mss));
        let links = match scenario.is_fabric() {
            true => 4,
            false => 2,
        };
        let from_topology = (scenario.propagation() * 2 + payload) * links;
        Reverie {
            round_trip: match scenario.network.base_rtt_ns {
                0 => from_topology,
                ns => Duration::from_ns(ns),
            },
            mss: u64::from(scenario.packets.mss),
            rdma_header: u64::from(scenario.rdma.header_bytes),
            rate: scenario.rate(),
        }
    }

    fn completion(&self, flow: BaseFlow) -> Duration {
        let headers = match flow.transport.is_rdma() {
            true => self.rdma_header * flow.bytes.div_ceil(self.mss),
            false => 0,
        };
        let on_line = serialisation(flow.bytes.saturating_add(headers), self.rate);
        self.round_trip.saturating_add(on_line)
    }
}

impl BaseTime {
    /// Prepares the base times for flows of `scenario`.
    pub fn new(scenario: &Scenario) -> BaseTime {
        BaseTime {
            base: scenario.traffic.slowdown_base,
            alone: IsolatedFlow::new(scenario),
            pipeline: Pipeline::new(scenario),
            round_trip: match scenario.is_fabric() {
                true => scenario.base_rtt(),
                false => scenario.propagation() * 4,
            },
            reverie: Reverie::new(scenario),
            rate: scenario.rate(),
        }
    }

    /// Returns the transport of a flow, which may start as part of a group or belong to the second
    /// class.
    pub(super) fn transport_of(&self, in_group: bool, in_second: bool) -> TransportKind {
        self.alone.scenario().transport_of(in_group, in_second)
    }

    /// Returns the time from the start of the flow to its end that counts as a slowdown of 1.
    /// Complexity: O(1); with `alone` as [`IsolatedFlow::completion_of`].
    ///
    /// # Panics
    /// When the flow has no bytes.
    pub fn of(&self, flow: BaseFlow) -> Duration {
        self.over(flow, None)
    }

    /// As [`of`](BaseTime::of), for a flow over links with these rates and delays, if some are given.
    pub(super) fn over(&self, flow: BaseFlow, links: Option<&[(Rate, Duration)]>) -> Duration {
        if let (SlowdownBase::Pipeline, Some(links)) = (self.base, links) {
            return self.pipeline.over(flow, links);
        }
        match self.base {
            SlowdownBase::Paper => self.round_trip + serialisation(flow.bytes, self.rate),
            SlowdownBase::Pipeline => self.pipeline.completion(flow),
            // Their rates follow delays and telemetry, which others can change to their advantage.
            SlowdownBase::Alone
                if flow.transport.sets_rate() || flow.transport.reads_telemetry() =>
            {
                self.pipeline.completion(flow)
            }
            SlowdownBase::Alone => self.alone.completion_of(flow),
            SlowdownBase::Reverie => self.reverie.completion(flow),
        }
    }
}

/// Returns `8 · bytes / rate`, rounded up; supports more bytes than a packet can hold.
fn serialisation(bytes: u64, rate: Rate) -> Duration {
    let picoseconds = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(rate.0));
    Duration(u64::try_from(picoseconds).unwrap_or(u64::MAX / 2))
}

/// A flow alone in the network whose window never limits it: every link takes the next packet as
/// soon as the packet is there and the link has sent the one before it.
#[derive(Clone, Debug)]
struct Pipeline {
    mss: u64,
    /// Wire bytes on top of the payload, preamble and gap included. RDMA has two values: without
    /// telemetry and with it.
    header: u64,
    rdma_headers: [u64; 2],
    ack: u64,
    syn: u64,
    handshake: bool,
    propagation: Duration,
    host: Rate,
    fabric: Rate,
    /// Number of links between switches that the packets of a flow take in turn.
    parallel: u64,
    /// True if data can overtake acknowledgements in switches, where these have a queue of their
    /// own.
    overtakes: bool,
}

impl Pipeline {
    fn new(scenario: &Scenario) -> Pipeline {
        let extra = u64::from(scenario.timestamp_bytes() + scenario.packets.overhead_bytes);
        Pipeline {
            mss: u64::from(scenario.packets.mss),
            header: u64::from(scenario.packets.header_bytes) + extra,
            rdma_headers: [TransportKind::Dcqcn, TransportKind::PowerTcpRdma]
                .map(|kind| scenario.rdma_headers(kind) + scenario.packets.overhead_bytes)
                .map(u64::from),
            ack: u64::from(scenario.packets.ack_bytes) + extra,
            syn: u64::from(scenario.packets.syn_bytes) + extra,
            handshake: scenario.tcp.handshake,
            propagation: scenario.propagation(),
            host: scenario.rate(),
            fabric: scenario.fabric_rate(),
            parallel: match scenario.network.ecmp {
                Ecmp::Spray => scenario.uplinks(),
                Ecmp::Hash | Ecmp::DstMod | Ecmp::FlowMod => 1,
            },
            overtakes: scenario.lossless.control_class
                || scenario.queues.ack_queue != AckQueue::OfFlow,
        }
    }

    fn header_of(&self, flow: BaseFlow) -> u64 {
        match flow.transport.is_rdma() {
            true => self.rdma_headers[usize::from(flow.transport.reads_telemetry())],
            false => self.header,
        }
    }

    /// With a handshake, a SYN and its answer cross the network first, and the acknowledgement of
    /// that goes ahead of the data: on all links, or on that of the host if data can overtake it.
    fn completion(&self, flow: BaseFlow) -> Duration {
        let across = [self.host, self.fabric, self.fabric, self.host];
        let with_delay = |rate| (rate, self.propagation);
        match flow.across {
            true if self.parallel > 1 => self.sprayed(flow, across),
            true => self.over(flow, &across.map(with_delay)),
            false => self.over(flow, &[self.host, self.host].map(with_delay)),
        }
    }

    fn is_opened(&self, flow: BaseFlow) -> bool {
        self.handshake && !flow.connected && !flow.transport.is_rdma()
    }

    /// Returns the time that a SYN and its answer take over links with these rates and delays.
    fn opening(&self, links: &[(Rate, Duration)]) -> Duration {
        let hops = links
            .iter()
            .map(|(rate, delay)| rate.transmission_time(self.syn) + *delay);
        hops.fold(Duration::ZERO, |sum, hop| sum + hop) * 2
    }

    fn over(&self, flow: BaseFlow, links: &[(Rate, Duration)]) -> Duration {
        let times = |bytes: u64| -> Vec<Duration> {
            let rates = links.iter().map(|(rate, _)| rate);
            rates.map(|rate| rate.transmission_time(bytes)).collect()
        };
        let delays: Vec<Duration> = links.iter().map(|(_, delay)| *delay).collect();
        // Times at which each link has sent the packet before.
        let mut sent = vec![Duration::ZERO; links.len()];
        let mut start = Duration::ZERO;
        if self.is_opened(flow) {
            start = self.opening(links);
            match self.overtakes {
                true => sent[0] = times(self.ack)[0],
                false => send(1, &times(self.ack), &delays, &mut sent),
            }
        }
        let last = (flow.bytes - 1) / self.mss;
        let header = self.header_of(flow);
        send(last, &times(self.mss + header), &delays, &mut sent);
        let rest = flow.bytes - last * self.mss;
        send(1, &times(rest + header), &delays, &mut sent);
        let reached = sent[links.len() - 1].saturating_add(delays[links.len() - 1]);
        start.saturating_add(reached)
    }

    /// Returns the same over parallel links between the switches, if no packet can find a better
    /// link: each takes the link that is free first. However packets take turns, a flow is not
    /// faster.
    ///
    /// Full packets leave the host a transmission time apart, and of those that take one link in turn the
    /// next may have to wait for the one before, `backlog` longer every round. At the second link the gaps
    /// are as long as the transmissions, and at the last one at least as long. The last packet, which can
    /// be shorter and then overtakes others, waits for a link of the last round, or for the last link.
    fn sprayed(&self, flow: BaseFlow, links: [Rate; 4]) -> Duration {
        let on = |rate: Rate, bytes: u64| u128::from(rate.transmission_time(bytes).0);
        let (host, fabric) = (self.host, self.fabric);
        let (mut start, mut ahead) = (Duration::ZERO, 0);
        if self.is_opened(flow) {
            let links = links.map(|rate| (rate, self.propagation));
            (start, ahead) = (self.opening(&links), on(host, self.ack));
        }
        let (links, delay) = (u128::from(self.parallel), u128::from(self.propagation.0));
        let (others, header) = ((flow.bytes - 1) / self.mss, self.header_of(flow));
        let rest = flow.bytes - others * self.mss + header;
        let (rest_on_host, rest_on_fabric) = (on(host, rest), on(fabric, rest));
        let (on_host, on_fabric) = (on(host, self.mss + header), on(fabric, self.mss + header));
        let backlog = on_fabric.saturating_sub(links * on_host);
        // Times at which a full packet, from 0, and the last packet reach the last switch.
        let reached = |number: u128| {
            let left = ahead + (number + 1) * on_host;
            left + 2 * on_fabric + 3 * delay + number / links * backlog
        };
        let others = u128::from(others);
        let last = ahead + others * on_host + rest_on_host + 2 * rest_on_fabric + 3 * delay;

        // Number of full packets that reach it before the last packet.
        let (mut before, mut end) = (0, others);
        while before < end {
            let middle = before.midpoint(end);
            match reached(middle) <= last {
                true => before = middle + 1,
                false => end = middle,
            }
        }
        let mut done = last + rest_on_host + (others - before) * on_host;
        if let Some(number) = before.checked_sub(1) {
            done = done.max(reached(number) + (others - number) * on_host + rest_on_host);
        }
        if let Some(number) = others.checked_sub(1) {
            done = done.max(reached(number) + on_host);
        }
        if let Some(number) = others.checked_sub(links) {
            done = done.max(reached(number) + rest_on_fabric + rest_on_host);
        }
        let done = u64::try_from(done + delay).unwrap_or(u64::MAX);
        start.saturating_add(Duration(done))
    }
}

/// Sends `packets` packets across all links; they wait at the first link and take `times` on each, and `delays` from
/// one end to the other.
///
/// A link has sent the last of them at the end of the longest chain of consecutive steps. Such a
/// chain begins when link `i` becomes free. Then the first packet crosses the links from there on,
/// and all others wait at the slowest of these.
fn send(packets: u64, times: &[Duration], delays: &[Duration], sent: &mut [Duration]) {
    let Some(others) = packets.checked_sub(1) else {
        return;
    };
    // From the last link to the first, because a link's time depends on those of the links before it.
    for link in (0..times.len()).rev() {
        let (mut crossing, mut slowest) = (Duration::ZERO, Duration::ZERO);
        let mut last = sent[link];
        for from in (0..=link).rev() {
            crossing += times[from];
            slowest = slowest.max(times[from]);
            let waiting = slowest.saturating_mul(others);
            let chain = sent[from].saturating_add(crossing).saturating_add(waiting);
            last = last.max(chain);
            if from > 0 {
                crossing += delays[from - 1];
            }
        }
        sent[link] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Gbit/s hosts, 40 Gbit/s between switches, 3 µs per link.
    fn scenario() -> Scenario {
        let mut scenario = Scenario::preset("credence-leafspine").unwrap();
        scenario.set("fabric_rate_bps=40e9").unwrap();
        scenario
    }

    fn base(scenario: &Scenario, bytes: u64, across: bool, connected: bool) -> Duration {
        BaseTime::new(scenario).of(BaseFlow {
            bytes,
            across,
            connected,
            transport: scenario.transport.kind,
        })
    }

    /// A full packet has 1,454 B, 1,163.2 ns at 10 Gbit/s and 290.8 at 40; a SYN 58 B, an
    /// acknowledgement 54 B.
    #[test]
    fn a_pipeline_by_hand() {
        let scenario = scenario();
        let full = 1_163_200;
        // Two packets: the second waits for the first at the host and is not delayed again.
        let across = 3 * full + 2 * full / 4 + 12_000_000;
        assert_eq!(base(&scenario, 2_800, true, true), Duration(across));
        assert_eq!(
            base(&scenario, 2_800, false, true),
            Duration(3 * full + 6_000_000)
        );
        // A last packet of 1 B, 55 B on the wire, waits behind the full one at the slow last link.
        let short = 2 * full + 2 * full / 4 + 44_000 + 12_000_000;
        assert_eq!(base(&scenario, 1_401, true, true), Duration(short));
        let syns = 2 * (2 * 46_400 + 2 * 11_600 + 12_000_000);
        let ack = 43_200;
        assert_eq!(
            base(&scenario, 2_800, true, false),
            Duration(syns + ack + across)
        );
    }

    /// Sending packets together takes as long as sending them one by one.
    #[test]
    fn packets_together_are_packets_one_by_one() {
        let times = [70, 20, 100, 30].map(Duration);
        let delays = [3_000_000, 40, 0, 7].map(Duration);
        for before in [[0; 4], [5, 900, 0, 0], [1, 2, 9_000_000, 40_000_000]] {
            for packets in [0, 1, 2, 7, 300_000] {
                let mut together = before.map(Duration);
                send(packets, &times, &delays, &mut together);
                let mut one_by_one = before.map(Duration);
                for _ in 0..packets {
                    send(1, &times, &delays, &mut one_by_one);
                }
                assert_eq!(together, one_by_one, "{packets} after {before:?}");
            }
        }
    }

    #[test]
    fn the_papers_count_a_round_trip_and_the_payload() {
        let mut scenario = scenario();
        scenario.set("slowdown_base=paper").unwrap();
        for across in [false, true] {
            let time = base(&scenario, 1_000_000_000, across, false);
            assert_eq!(time, Duration(24_000_000 + 800_000_000_000));
        }
    }
}
