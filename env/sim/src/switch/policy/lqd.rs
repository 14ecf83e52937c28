//! Longest Queue Drop (Hahne, Kesselman and Mansour, SPAA 2001; 1.707-competitive after Antoniadis
//! et al., ICALP 2021).

use super::{Definition, Deployment, PacketView, Policy, PolicyInfo, Verdict, View};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "lqd",
        summary: "Longest Queue Drop: pushes out of the longest queue when the buffer overflows",
        rule: "accept; on overflow push out the tail of the longest queue, or drop if that is its own",
        source: "Hahne, Kesselman and Mansour, SPAA 2001",
        deployment: Deployment::NewHardware,
        parameters: &[],
    },
    build: |_, _| Ok(LongestQueueDrop.into()),
};

/// Accepts every packet. If a packet does not fit, the longest queue loses as many of its last
/// packets as needed; the arrival is counted in its own queue. If the arrival's own queue is the
/// longest, the arrival is lost.
#[derive(Clone, Copy, Default, Debug)]
pub struct LongestQueueDrop;

impl Policy for LongestQueueDrop {
    #[inline]
    fn on_arrival(&mut self, _view: View<'_>, _packet: PacketView) -> Verdict {
        Verdict::Accept
    }

    fn pushes_out(&self) -> bool {
        true
    }

    fn victim(&mut self, _view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        let longest = longest_with(lengths, packet.queue, packet.bytes);
        (longest != packet.queue).then_some(longest)
    }

    fn threshold(&self, _view: View<'_>, _queue: usize) -> Option<u64> {
        None
    }
}

/// Returns the longest queue, with `bytes` added to queue `own`. Of equal ones it is `own`, else the
/// first.
#[inline]
pub(super) fn longest_with(lengths: &[u64], own: usize, bytes: u64) -> usize {
    let (mut longest, mut most) = (own, lengths[own] + bytes);
    for (queue, &length) in lengths.iter().enumerate() {
        if length > most {
            (longest, most) = (queue, length);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_longest_queues_the_arrivals_own_is_taken_and_else_the_first() {
        assert_eq!(longest_with(&[3, 5, 5, 2], 3, 1), 1);
        assert_eq!(
            longest_with(&[3, 5, 5, 2], 3, 3),
            3,
            "its own reaches 5 too"
        );
        assert_eq!(longest_with(&[3, 5, 6, 2], 3, 3), 2);
        assert_eq!(longest_with(&[0, 0], 1, 0), 1);
    }
}
