//! Measurement quality of a run: deviations of the machine from the scenario.

use std::fmt;

use bufgym_util::convert::{index, nearest_rank};
use serde::{Deserialize, Serialize};

/// Quantiles of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile (nearest rank, as the median).
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Quantiles {
    /// Computes the quantiles of these values; zeros if there are none.
    pub fn of(mut values: Vec<f64>) -> Quantiles {
        values.sort_by(f64::total_cmp);
        let rank = |share: f64| {
            let rank = index(nearest_rank(share, values.len() as u64));
            values.get(rank - 1).copied().unwrap_or(0.0)
        };
        Quantiles {
            p50: rank(0.5),
            p99: rank(0.99),
            max: rank(1.0),
        }
    }

    /// Returns all quantiles multiplied by a factor.
    pub(crate) fn times(self, factor: f64) -> Quantiles {
        Quantiles {
            p50: self.p50 * factor,
            p99: self.p99 * factor,
            max: self.max * factor,
        }
    }
}

/// Lateness of a port's packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortPacing {
    /// The port.
    pub port: usize,
    /// Number of packets that the port sent.
    pub packets: usize,
    /// Time from the instant at which a packet was due at the receiver to the call that sent it,
    /// microseconds.
    pub late_us: Quantiles,
}

/// Packets that were lost outside the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Packets lost for lack of room in the packet sockets of the switch.
    pub sockets: u64,
    /// Packets lost at the interfaces of the switch.
    pub interfaces: u64,
    /// Packets lost between interfaces and protocols, on the whole machine.
    pub backlog: u64,
    /// Packets lost at interfaces, queues and sockets of the hosts.
    pub hosts: u64,
    /// Packets lost when the switch sent them.
    pub unsent: u64,
}

impl Lost {
    /// Returns the total number.
    pub fn total(&self) -> u64 {
        self.sockets + self.interfaces + self.backlog + self.hosts + self.unsent
    }
}

/// Measurement quality of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Reason why the run does not count, if there is one.
    pub void: Option<String>,
    /// Transmission time of a full packet on a line, microseconds.
    pub packet_us: f64,
    /// Lateness of all packets, microseconds.
    pub late_us: Quantiles,
    /// Lateness of all packets as a share of the time of a full packet.
    pub late_share: Quantiles,
    /// Lateness by port.
    pub ports: Vec<PortPacing>,
    /// Share of the time for which the processor of the switch had nothing to do.
    pub cpu_headroom: f64,
    /// Longest time for which the switch did not run, microseconds.
    pub longest_stall_us: f64,
    /// Share of the time in pauses of the switch of more than 200 us.
    pub stalled_share: f64,
    /// Packets that reached the switch before the program had looked at them.
    pub overtaken: u64,
    /// Longest such delay, microseconds.
    pub overtaken_most_us: f64,
    /// Packets that were lost outside the switch.
    pub lost: Lost,
    /// Frames from hosts that are not TCP between hosts.
    pub foreign: u64,
    /// Smallest step of the clock, nanoseconds.
    pub clock_step_ns: u64,
    /// Time from the planned start of a flow to the call that opened its connection, microseconds.
    pub start_late_us: Quantiles,
    /// Round trip of the handshake on the idle network, microseconds: the shortest measured.
    pub rtt_us: f64,
    /// Round trip of the handshake by rate and propagation alone, microseconds.
    pub rtt_ideal_us: f64,
    /// Segments that hosts retransmitted.
    pub retransmitted: u64,
    /// Duration of decisions of a learned policy, microseconds; zeros for rules.
    pub decision_us: Quantiles,
    /// Processors of the machine that may be used.
    pub processors: usize,
    /// True if the switch has a processor of its own and precedence there.
    pub precedence: bool,
    /// True if processors of the hosts receive the packets from the switch (receive packet steering).
    pub steered: bool,
    /// Number of processes that wanted to run, on average over the minute before.
    pub load_average: Option<f64>,
    /// Wire bytes that arrived at the switch.
    pub came_bytes: u64,
    /// Wire bytes that the switch sent.
    pub sent_bytes: u64,
    /// Wire bytes of packets that the policy lost.
    pub dropped_bytes: u64,
    /// Wire bytes in the switch at the end.
    pub held_bytes: u64,
}

impl Truth {
    /// Fills in [`void`](Truth::void).
    pub(crate) fn judged(mut self) -> Truth {
        let accounted = self.sent_bytes + self.dropped_bytes + self.held_bytes;
        self.void = if self.lost.total() > 0 {
            Some(format!(
                "{} packets were lost outside the switch ({:?}); lower rate_bps, or leave the \
                 processors to the testbed",
                self.lost.total(),
                self.lost
            ))
        } else if accounted != self.came_bytes {
            Some(format!(
                "{} bytes came to the switch and {accounted} are accounted for",
                self.came_bytes
            ))
        } else {
            None
        };
        self
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        writeln!(
            f,
            "pacing      late by {:.2} us at the median, {:.2} % of a packet's {:.1} us; p99 {:.1} us \
             ({:.1} %), at most {:.0} us",
            self.late_us.p50,
            percent(self.late_share.p50),
            self.packet_us,
            self.late_us.p99,
            percent(self.late_share.p99),
            self.late_us.max
        )?;
        writeln!(
            f,
            "processor   {:.0} % of the switch's is left; it stood still for {:.0} us at most, {:.2} % \
             of the time; {} processors, load average {}{}",
            percent(self.cpu_headroom),
            self.longest_stall_us,
            percent(self.stalled_share),
            self.processors,
            self.load_average
                .map_or("unknown".to_owned(), |load| format!("{load:.2}")),
            match self.precedence {
                true => "",
                false => "; without precedence over other programs",
            }
        )?;
        writeln!(
            f,
            "outside     {} packets lost outside the switch (sockets {}, interfaces {}, backlog {}, \
             hosts {}, not sent {}), {} of other protocols",
            self.lost.total(),
            self.lost.sockets,
            self.lost.interfaces,
            self.lost.backlog,
            self.lost.hosts,
            self.lost.unsent,
            self.foreign
        )?;
        writeln!(
            f,
            "clock       steps of {} ns; flows start {:.0} us late at the median, p99 {:.0} us; round \
             trip {:.0} us, {:.0} us of it by rate and propagation",
            self.clock_step_ns,
            self.start_late_us.p50,
            self.start_late_us.p99,
            self.rtt_us,
            self.rtt_ideal_us
        )?;
        match &self.void {
            Some(reason) => write!(f, "void        {reason}"),
            None => write!(
                f,
                "valid       every byte that came to the switch is accounted for"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let values = (1..=200).rev().map(f64::from).collect();
        let quantiles = Quantiles::of(values);
        assert_eq!(
            (quantiles.p50, quantiles.p99, quantiles.max),
            (100.0, 198.0, 200.0)
        );
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
    }
}
