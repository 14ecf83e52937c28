//! ABM with the estimates of its published ns-3 code: the number of congested queues, and each queue's
//! share of its line.
//!
//! Both differ from the paper. A queue counts as congested in part, by its length in units of 28,000 B,
//! as of the last packet that came to it. Its share is computed from the bytes that it has sent in an
//! interval, plus 1,472 B for every turn in which the scheduler found it empty.

use bufgym_util::convert::{floor_u64, index};

use super::{ActiveBufferConfig, PacketView, Policy, Verdict, View};
use crate::scenario::{Scenario, Scheduler};
use crate::switch::Loss;
use crate::units::{Duration, Instant};

/// Length from which a queue counts fully as congested, bytes.
const CONGESTED: u64 = 28_000;

/// Bytes that count as sent for a turn in which the queue was empty.
const EMPTY_TURN: u64 = 1_472;

/// As [`ActiveBufferManagement`](super::ActiveBufferManagement), with the estimates of the published
/// code, and without headroom.
///
/// The code has a clock of its own at every port, which begins with the first packet that comes to it;
/// a switch has one clock for all ports. Turns of the scheduler are those of round robin or of strict
/// priority; with deficits they count as with round robin. They are counted when a packet departs.
#[derive(Clone, Debug)]
pub struct AbmNs3 {
    /// α_p of every queue.
    alphas: Box<[f64]>,
    alpha_unscheduled: Option<f64>,
    /// `(1/n_p) · μ/b` of every queue.
    factors: Box<[f64]>,
    congestion: Congestion,
    drain: Drain,
    interval: Duration,
    next_update: Instant,
}

impl AbmNs3 {
    /// Creates the policy for an empty switch.
    ///
    /// # Panics
    /// When `config.alphas` does not have one α per priority.
    pub fn new(config: ActiveBufferConfig, scenario: &Scenario) -> Self {
        let (ports, priorities) = (
            scenario.port_count(),
            scenario.queues.queues_per_port as usize,
        );
        assert_eq!(config.alphas.len(), priorities, "one α per priority");
        let queues = ports * priorities;
        AbmNs3 {
            alphas: config.alphas.repeat(ports).into_boxed_slice(),
            alpha_unscheduled: config.alpha_unscheduled,
            factors: vec![1.0; queues].into_boxed_slice(),
            congestion: Congestion::new(queues, priorities, scenario),
            drain: Drain::new(
                ports,
                priorities,
                scenario.queues.scheduler == Scheduler::Strict,
            ),
            interval: config.update.max(Duration(1)),
            next_update: Instant::MAX,
        }
    }

    /// Makes the updates that are due. The clock begins with the first packet.
    #[inline]
    fn catch_up(&mut self, view: View<'_>) {
        if view.now >= self.next_update {
            self.update(view);
        }
    }

    #[cold]
    fn update(&mut self, view: View<'_>) {
        let late = (view.now - self.next_update).0 / self.interval.0;
        let whole = self.interval.0 as f64 * view.rate.0 as f64;
        let least = 1.0 / self.congestion.priorities() as f64;
        for (queue, factor) in self.factors.iter_mut().enumerate() {
            let share = match late {
                0 => 8e12 * self.drain.take(queue) as f64 / whole,
                // Nothing has been sent in the last of the intervals.
                _ => 0.0,
            };
            let share = match (least..=1.0).contains(&share) {
                true => share,
                false => 1.0,
            };
            *factor = share / self.congestion.of_queue(queue);
        }
        if late > 0 {
            self.drain.forget();
        }
        let updates = self.interval.saturating_mul(late + 1);
        self.next_update = self.next_update.saturating_add(updates);
    }
}

impl Policy for AbmNs3 {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        self.catch_up(view);
        self.congestion.observe(view, packet.queue);
        if self.next_update == Instant::MAX {
            self.next_update = view.now.saturating_add(self.interval);
        }
        let alpha = match self.alpha_unscheduled {
            Some(alpha) if packet.unscheduled => alpha,
            _ => self.alphas[packet.queue],
        };
        let threshold = alpha * self.factors[packet.queue] * view.buffer.free() as f64;
        match (view.buffer.queue(packet.queue) as f64) < threshold {
            true => Verdict::Accept,
            false => Verdict::Drop,
        }
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.catch_up(view);
        self.drain.sent(view, packet);
    }

    /// The code also looks at the queue of a packet that does not fit.
    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        if loss == Loss::Full {
            self.catch_up(view);
            self.congestion.observe(view, packet.queue);
        }
    }

    /// Returns the threshold of scheduled packets.
    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let alpha = self.alphas[queue] * self.factors[queue];
        Some(floor_u64(alpha * view.buffer.free() as f64))
    }

    /// Returns the factor of `B - Q`.
    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.alphas[queue] * self.factors[queue])
    }

    /// Sets α_p, which applies to scheduled packets.
    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.alphas[queue] = alpha;
        true
    }
}

/// Congested queues n_p: `max(1, Σ min(1, q / 28,000 B))` over the ports.
///
/// If ports of spines draw on the pool, the code counts each with the port of the leaf that has the
/// same number. It does not matter which hosts these are; here they are the first ones.
#[derive(Clone, Debug)]
struct Congestion {
    /// `min(q, 28,000 B)` of every queue when a packet came to it last.
    seen: Box<[u64]>,
    /// Number of queues with a place of their own in `seen`; those behind them begin from the first
    /// again...
    own: usize,
    /// ...and again after this many.
    others: usize,
    /// Sums of `seen` by priority.
    sums: Box<[u64]>,
}

impl Congestion {
    fn new(queues: usize, priorities: usize, scenario: &Scenario) -> Congestion {
        let uplinks = index(scenario.uplinks()) * priorities;
        let (own, others) = match scenario.pools_spines() {
            true => (
                queues - uplinks,
                scenario.network.links_per_pair as usize * priorities,
            ),
            false => (queues, 1),
        };
        Congestion {
            seen: vec![0; own].into_boxed_slice(),
            own,
            others,
            sums: vec![0; priorities].into_boxed_slice(),
        }
    }

    fn priorities(&self) -> usize {
        self.sums.len()
    }

    /// Notes that a packet comes to a queue.
    #[inline]
    fn observe(&mut self, view: View<'_>, queue: usize) {
        let bytes = view.buffer.queue(queue).min(CONGESTED);
        let place = match queue.checked_sub(self.own) {
            None => queue,
            Some(of_spines) => of_spines % self.others,
        };
        let before = std::mem::replace(&mut self.seen[place], bytes);
        let sum = &mut self.sums[queue % self.sums.len()];
        *sum = *sum - before + bytes;
    }

    /// Returns n_p for a queue.
    fn of_queue(&self, queue: usize) -> f64 {
        let sum = self.sums[queue % self.sums.len()];
        (sum as f64 / CONGESTED as f64).max(1.0)
    }
}

/// Bytes that queues have sent, or would have sent, since the last update.
#[derive(Clone, Debug)]
struct Drain {
    bytes: Box<[u64]>,
    /// Priority whose turn it is at every port.
    turns: Box<[u8]>,
    priorities: usize,
    /// True if the scheduler begins with the first queue every time.
    strict: bool,
}

impl Drain {
    fn new(ports: usize, priorities: usize, strict: bool) -> Drain {
        Drain {
            bytes: vec![0; ports * priorities].into_boxed_slice(),
            turns: vec![0; ports].into_boxed_slice(),
            priorities,
            strict,
        }
    }

    /// Counts a packet that has left its queue. The scheduler had found the queues before it empty; if
    /// no packet is left at the port, it finds all of them empty.
    fn sent(&mut self, view: View<'_>, packet: PacketView) {
        let first = packet.port * self.priorities;
        let taken = packet.queue - first;
        let mut turn = match self.strict {
            true => 0,
            false => usize::from(self.turns[packet.port]),
        };
        while turn != taken {
            self.bytes[first + turn] += EMPTY_TURN;
            turn = (turn + 1) % self.priorities;
        }
        let next = (taken + 1) % self.priorities;
        self.turns[packet.port] = u8::try_from(next).expect("a port has at most 8 queues");
        self.bytes[packet.queue] += packet.bytes;
        if view.buffer.port(packet.port) == 0 {
            for bytes in &mut self.bytes[first..first + self.priorities] {
                *bytes += EMPTY_TURN;
            }
        }
    }

    fn take(&mut self, queue: usize) -> u64 {
        std::mem::take(&mut self.bytes[queue])
    }

    fn forget(&mut self) {
        self.bytes.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SharedBuffer;
    use crate::units::Rate;

    /// A manually driven switch: two ports of 1 Gbit/s with four queues each, and updates every 100 µs,
    /// in which a port sends 12,500 B.
    struct Bench {
        buffer: SharedBuffer,
        policy: AbmNs3,
        now: Instant,
    }

    const RATE: Rate = Rate(1_000_000_000);

    impl Bench {
        fn new(changes: &[&str]) -> Bench {
            let mut scenario = Scenario::default();
            for change in ["ports=2", "queues_per_port=4"].iter().chain(changes) {
                scenario.set(change).unwrap();
            }
            let config = ActiveBufferConfig {
                alphas: vec![1.0; 4],
                alpha_unscheduled: Some(64.0),
                update: Duration::from_us(100),
                headroom_bytes: 0,
            };
            Bench {
                buffer: SharedBuffer::new(1_000_000, 1_000_000, 2, 4),
                policy: AbmNs3::new(config, &scenario),
                now: Instant::ZERO,
            }
        }

        fn packet(queue: usize) -> PacketView {
            PacketView {
                port: queue / 4,
                queue,
                bytes: 1_000,
                flow: 0,
                unscheduled: false,
            }
        }

        fn arrive(&mut self, queue: usize, at_us: u64) -> Verdict {
            self.now = Instant::from_us(at_us);
            let view = View {
                buffer: &self.buffer,
                now: self.now,
                rate: RATE,
            };
            let verdict = self.policy.on_arrival(view, Bench::packet(queue));
            if verdict == Verdict::Accept {
                self.buffer.store(queue, 1_000, self.now);
            }
            verdict
        }

        fn depart(&mut self, queue: usize, at_us: u64) {
            self.now = Instant::from_us(at_us);
            self.buffer.release(queue, 1_000, self.now);
            let view = View {
                buffer: &self.buffer,
                now: self.now,
                rate: RATE,
            };
            self.policy.on_departure(view, Bench::packet(queue));
        }

        fn alphas(&self, queues: [usize; 4]) -> [f64; 4] {
            queues.map(|queue| self.policy.alpha(queue).unwrap())
        }
    }

    /// Before their last packets arrive, queue 1 of port 0 has 14 packets and that of port 1 has 35:
    /// they count as a half and one. The sum applies from the update on, and stays although packets
    /// leave.
    #[test]
    fn congestion_is_a_sum_of_lengths_as_of_the_last_arrival() {
        let mut bench = Bench::new(&[]);
        for _ in 0..15 {
            bench.arrive(1, 1);
        }
        for _ in 0..36 {
            bench.arrive(5, 2);
        }
        assert_eq!(bench.alphas([0, 1, 2, 5]), [1.0; 4]);
        // The clock has begun at 1 µs.
        bench.arrive(0, 100);
        assert_eq!(bench.alphas([0, 1, 2, 5]), [1.0; 4]);
        bench.arrive(0, 101);
        assert_eq!(bench.alphas([0, 1, 2, 5]), [1.0, 1.0 / 1.5, 1.0, 1.0 / 1.5]);
        for _ in 0..15 {
            bench.depart(1, 150);
        }
        bench.arrive(0, 350);
        assert_eq!(bench.alphas([0, 1, 2, 5]), [1.0, 1.0 / 1.5, 1.0, 1.0 / 1.5]);
        bench.arrive(1, 360);
        bench.arrive(0, 401);
        assert_eq!(bench.alphas([0, 1, 2, 5]), [1.0; 4]);
    }

    /// Queues 1 and 3 of port 0 are busy. In every round the scheduler finds 0 and 2 empty.
    #[test]
    fn an_empty_turn_counts_as_bytes() {
        let mut bench = Bench::new(&[]);
        for queue in [1, 3].repeat(10) {
            bench.arrive(queue, 0);
        }
        for queue in [1, 3, 1, 3, 1, 3, 1] {
            bench.depart(queue, 50);
        }
        bench.arrive(4, 100);
        // The queues have four empty turns, four packets, three empty turns and three packets.
        let share = |bytes: f64| bytes / 12_500.0;
        let expected = [
            share(4.0 * 1_472.0),
            share(4_000.0),
            share(3.0 * 1_472.0),
            1.0,
        ];
        assert_eq!(
            bench.alphas([0, 1, 2, 3]),
            expected,
            "3,000 B are less than a fourth"
        );
        // After an interval without a departure, every queue may use the whole line.
        bench.arrive(4, 250);
        assert_eq!(bench.alphas([0, 1, 2, 3]), [1.0; 4]);
    }

    /// With strict priority the scheduler begins at queue 0 for every packet, and does not look behind
    /// the one that it takes. The last packet leaves all queues empty.
    #[test]
    fn strict_priority_passes_the_first_queues_only() {
        let mut bench = Bench::new(&["scheduler=strict"]);
        for queue in [2, 2, 2] {
            bench.arrive(queue, 0);
        }
        for _ in 0..3 {
            bench.depart(2, 50);
        }
        assert_eq!(
            bench.policy.drain.bytes[..4],
            [4 * 1_472, 4 * 1_472, 3_000 + 1_472, 1_472]
        );
    }

    #[test]
    fn unscheduled_packets_have_their_alpha_and_may_have_none() {
        let mut bench = Bench::new(&[]);
        while bench.arrive(0, 0) == Verdict::Accept {}
        assert_eq!(bench.buffer.queue(0), 500_000);
        let unscheduled = PacketView {
            unscheduled: true,
            ..Bench::packet(0)
        };
        let view = View {
            buffer: &bench.buffer,
            now: bench.now,
            rate: RATE,
        };
        assert_eq!(bench.policy.on_arrival(view, unscheduled), Verdict::Accept);
        bench.policy.alpha_unscheduled = None;
        assert_eq!(bench.policy.on_arrival(view, unscheduled), Verdict::Drop);
    }
}
