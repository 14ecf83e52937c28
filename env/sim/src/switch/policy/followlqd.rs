//! FollowLQD (Addanki, Pacut and Schmid, NSDI 2024, Algorithm 2): drops the packets that would make
//! a queue longer than it would be under LQD.

mod virtual_queues;

pub use virtual_queues::VirtualQueues;

use super::{Definition, Deployment, Loss, PacketView, Policy, PolicyInfo, Verdict, View};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "followlqd",
        summary: "follows the queue lengths that Longest Queue Drop would have, without push-out",
        rule: "accept iff q_i + L <= T_i, T_i the length of queue i under LQD",
        source: "Addanki, Pacut and Schmid, NSDI 2024, Algorithm 2",
        deployment: Deployment::NewHardware,
        parameters: &[],
    },
    build: |_, scenario| {
        let ports = scenario.port_count();
        Ok(FollowLqd::new(ports, scenario.queues.queues_per_port as usize).into())
    },
};

/// Accepts iff `q_i + L <= T_i`, where `T_i` is the length of the virtual queue after the arrival,
/// bytes; see [`VirtualQueues`].
#[derive(Clone, Debug)]
pub struct FollowLqd {
    queues: VirtualQueues,
}

impl FollowLqd {
    /// Creates the policy with empty virtual queues.
    pub fn new(ports: usize, queues_per_port: usize) -> FollowLqd {
        FollowLqd {
            queues: VirtualQueues::new(ports, queues_per_port),
        }
    }

    /// Returns the virtual queues.
    pub fn virtual_queues(&self) -> &VirtualQueues {
        &self.queues
    }
}

impl Policy for FollowLqd {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let length = self.queues.arrive(view, packet);
        if view.buffer.queue(packet.queue) + packet.bytes <= length {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, _view: View<'_>, packet: PacketView) {
        self.queues.enqueued(packet);
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.queues.departed(view, packet);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        match loss {
            // `on_arrival` is not called for packets that do not fit.
            Loss::Full => {
                self.queues.arrive(view, packet);
            }
            Loss::PushedOut | Loss::Head => self.queues.removed(view, packet),
            Loss::Refused | Loss::Early => {}
        }
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(self.queues.length(view, queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::policy::workbench::Workbench;
    use crate::units::Instant;

    /// A line that has nothing to send drains its virtual queue, 125 B in a microsecond, even if the
    /// last packet was dropped at the head.
    #[test]
    fn the_virtual_queue_drains_when_nothing_is_left_to_send() {
        let mut bench = Workbench::new(FollowLqd::new(2, 1), 100_000, 2);
        for _ in 0..3 {
            assert!(bench.accepts(0, 1_000));
        }
        assert!(bench.depart(0));
        while bench.drop_first(0) {}
        let length = |bench: &Workbench<FollowLqd>| bench.policy.threshold(bench.view(), 0);
        assert_eq!(length(&bench), Some(2_000));
        bench.now = Instant::from_us(8);
        assert_eq!(length(&bench), Some(1_000));
        bench.now = Instant::from_us(16);
        assert_eq!(length(&bench), Some(0));
    }
}
