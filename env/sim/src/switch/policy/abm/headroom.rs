//! A part of the buffer that is reserved for unscheduled packets.

use crate::switch::SharedBuffer;
use crate::switch::policy::PacketView;

/// Headroom: `bytes` next to the shared pool, for unscheduled packets that the pool refuses.
///
/// The bytes that leave a queue are first taken off its headroom. So the headroom is soon free for
/// the next burst.
#[derive(Clone, Debug)]
pub(super) struct Headroom {
    bytes: u64,
    used: u64,
    by_queue: Box<[u64]>,
    /// True if the packet that was accepted last goes into the headroom.
    entering: bool,
}

impl Headroom {
    pub(super) fn new(bytes: u64, queues: usize) -> Headroom {
        Headroom {
            bytes,
            used: 0,
            by_queue: vec![0; queues].into_boxed_slice(),
            entering: false,
        }
    }

    /// Returns the free bytes of the shared pool.
    pub(super) fn free_outside(&self, buffer: &SharedBuffer) -> u64 {
        let pool = buffer.capacity().saturating_sub(self.bytes);
        pool.saturating_sub(buffer.occupancy().saturating_sub(self.used))
    }

    /// Returns true if a packet may enter: into the pool if `pool_takes_it`, else into the headroom.
    pub(super) fn admits(&mut self, pool_takes_it: bool, packet: PacketView) -> bool {
        let room = self.used + packet.bytes <= self.bytes;
        self.entering = !pool_takes_it && packet.unscheduled && room;
        pool_takes_it || self.entering
    }

    pub(super) fn enqueued(&mut self, packet: PacketView) {
        if std::mem::take(&mut self.entering) {
            self.by_queue[packet.queue] += packet.bytes;
            self.used += packet.bytes;
        }
    }

    pub(super) fn left(&mut self, packet: PacketView) {
        let here = &mut self.by_queue[packet.queue];
        let returned = packet.bytes.min(*here);
        *here -= returned;
        self.used -= returned;
    }
}
