//! Harmonic (Kesselman and Mansour, Theoretical Computer Science, 2004).

use bufgym_util::convert::floor_u64;

use super::{Definition, Deployment, PacketView, Policy, PolicyInfo, Verdict, View};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "harmonic",
        summary: "Harmonic: the k-th longest queue stays within B/(k H_N)",
        rule: "accept iff then the k-th longest queue is at most B/(k H_N) for every k, H_N the N-th harmonic number",
        source: "Kesselman and Mansour, Theoretical Computer Science 2004",
        deployment: Deployment::NewHardware,
        parameters: &[],
    },
    build: |_, scenario| Ok(Harmonic::new(scenario.queue_count()).into()),
};

/// Keeps the k-th longest queue within `B/(k·H_N)`, for every k.
///
/// With `q' = q_i + L` the queue of the arrival would be number `k = 1 + #{j≠i : q_j >= q'}`, and
/// `k·q' <= B/H_N` must hold. If all packets have one size, this condition is sufficient. Otherwise
/// a long packet can make its queue longer than some others. Each of those moves back by one place
/// and must meet the bound of its new place.
///
/// Complexity of an arrival: O(queues), and as much again for each queue that it overtakes.
#[derive(Clone, Copy, Debug)]
pub struct Harmonic {
    harmonic_number: f64,
}

impl Harmonic {
    /// Creates the policy for a switch with this number of queues.
    pub fn new(queues: usize) -> Harmonic {
        Harmonic {
            harmonic_number: (1..=queues).map(|k| 1.0 / k as f64).sum(),
        }
    }

    /// Returns the bound on the longest queue, `B/H_N`, bytes.
    #[inline]
    fn longest(self, view: View<'_>) -> f64 {
        view.buffer.capacity() as f64 / self.harmonic_number
    }

    /// Returns true if the queues between `length` and `longer`, which the arrival at `queue`
    /// overtakes, keep within their bounds.
    #[cold]
    fn overtaken_fit(self, view: View<'_>, queue: usize, longer: u64) -> bool {
        let lengths = view.buffer.queues();
        let length = lengths[queue];
        let longest = self.longest(view);
        let mut overtaken = lengths
            .iter()
            .filter(|&&other| length < other && other < longer);
        overtaken.all(|&other| {
            let at_least = lengths.iter().filter(|&&any| any >= other).count();
            // Plus the queue of the arrival, which is now longer.
            (at_least + 1) as f64 * other as f64 <= longest
        })
    }
}

impl Policy for Harmonic {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let lengths = view.buffer.queues();
        let length = lengths[packet.queue];
        let longer = length + packet.bytes;
        let (mut not_shorter, mut overtakes) = (0_u32, false);
        // Neither condition holds for the arrival's own queue.
        for &other in lengths {
            not_shorter += u32::from(other >= longer);
            overtakes |= length < other && other < longer;
        }
        let place = f64::from(1 + not_shorter);
        let fits = place * longer as f64 <= self.longest(view)
            && (!overtakes || self.overtaken_fit(view, packet.queue, longer));
        if fits { Verdict::Accept } else { Verdict::Drop }
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let length = view.buffer.queue(queue);
        let lengths = view.buffer.queues();
        let longer = lengths.iter().filter(|&&other| other > length).count();
        Some(floor_u64(self.longest(view) / (longer + 1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::switch::policy::workbench::Workbench;

    /// Returns true if the lengths, in descending order, satisfy the theorem.
    fn within_bounds(lengths: &[u64], capacity: u64) -> bool {
        let harmonic_number: f64 = (1..=lengths.len()).map(|k| 1.0 / k as f64).sum();
        let mut lengths = lengths.to_vec();
        lengths.sort_unstable_by_key(|&length| std::cmp::Reverse(length));
        let mut places = lengths.iter().zip(1..);
        places.all(|(&length, k)| length as f64 * f64::from(k) <= capacity as f64 / harmonic_number)
    }

    /// Generates arrivals of these sizes and departures.
    fn events(sizes: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<(usize, u64, bool)>> {
        let event = (any::<usize>(), sizes, prop::bool::weighted(0.3));
        prop::collection::vec(event, 1..400)
    }

    proptest! {
        #[test]
        fn the_kth_longest_queue_keeps_its_bound(
            queues in 1_usize..20,
            capacity in 1_000_u64..200_000,
            events in events(prop_oneof![Just(64), Just(1_518), 1_u64..9_000]),
        ) {
            let mut bench = Workbench::new(Harmonic::new(queues), capacity, queues);
            for (queue, bytes, departs) in events {
                if departs {
                    bench.depart(queue % queues);
                } else {
                    bench.accepts(queue % queues, bytes);
                }
                let lengths = bench.buffer.queues();
                prop_assert!(within_bounds(lengths, capacity), "{:?}", lengths);
            }
        }

        /// A packet that keeps the bound is accepted.
        #[test]
        fn a_packet_is_refused_only_for_the_bound(
            queues in 1_usize..20,
            capacity in 1_000_u64..200_000,
            sizes in prop_oneof![Just((1_518, 1_519)), Just((1, 9_000))],
            events in events(1_u64..9_000),
        ) {
            let mut bench = Workbench::new(Harmonic::new(queues), capacity, queues);
            for (queue, bytes, departs) in events {
                let (queue, bytes) = (queue % queues, bytes.clamp(sizes.0, sizes.1 - 1));
                if departs {
                    bench.depart(queue);
                    continue;
                }
                let mut then = bench.buffer.queues().to_vec();
                then[queue] += bytes;
                let expected = bench.buffer.fits(bytes) && within_bounds(&then, capacity);
                prop_assert_eq!(bench.accepts(queue, bytes), expected);
            }
        }
    }

    #[test]
    fn lengths_of_three_queues() {
        // H_3 = 11/6: the longest queue may have 6,000 bytes, the second 3,000, the third 2,000.
        let mut bench = Workbench::new(Harmonic::new(3), 11_000, 3);
        assert_eq!(bench.policy.threshold(bench.view(), 0), Some(6_000));
        for _ in 0..6 {
            assert!(bench.accepts(0, 1_000));
        }
        assert!(!bench.accepts(0, 1));
        for _ in 0..3 {
            assert!(bench.accepts(1, 1_000));
        }
        assert!(!bench.accepts(1, 1));
        assert!(bench.accepts(2, 2_000) && !bench.accepts(2, 1));
    }

    #[test]
    fn a_long_packet_does_not_push_another_queue_beyond_its_bound() {
        let mut bench = Workbench::new(Harmonic::new(3), 11_000, 3);
        assert!(bench.accepts(0, 4_000));
        // The packet is within 6,000, but then queue 0 would be second with more than 3,000.
        assert!(!bench.accepts(1, 6_000));
        assert!(bench.accepts(1, 3_000));
    }
}
