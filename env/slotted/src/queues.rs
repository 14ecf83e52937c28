//! The queues: [`Queues`] is what a policy may read, [`Storage`] what a run changes.

mod counts;
mod packets;

pub use counts::Counts;
pub(super) use counts::Ranking;
pub use packets::Packets;

use std::cmp::Ordering;

use super::Packet;

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its place in the list of arrivals.
    pub index: usize,
    /// The packet.
    pub packet: Packet,
}

impl Arrival {
    /// Port that it leaves by.
    #[inline]
    pub fn port(&self) -> usize {
        self.packet.port as usize
    }
}

/// Which packet of a queue is pushed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The last one in the order of the queue.
    Last,
    /// The one with the largest remaining work; of several, the one that arrived last.
    LargestWork,
    /// The one with the smallest value; of several, the one that arrived last.
    SmallestValue,
}

/// The state of the queues that a policy may read.
pub trait Queues {
    /// Number of ports (`N`).
    fn ports(&self) -> usize;
    /// Packets that fit (`B`).
    fn capacity(&self) -> u64;
    /// Packets now stored (`Q`).
    fn stored(&self) -> u64;
    /// Packets in the queue of `port` (`q_i`).
    fn len(&self, port: usize) -> u64;
    /// Length of the longest queue.
    fn longest(&self) -> u64;
    /// The longest queue, with `arrival` counted in its own queue. Of several it is the one with
    /// the largest packet, then the arrival's own, then the lowest.
    fn longest_with(&self, arrival: &Arrival) -> usize;
    /// Remaining work of all packets of `port` (`W_i`).
    fn work(&self, port: usize) -> u64;
    /// Value of all packets of `port` (`V_i`).
    fn value(&self, port: usize) -> u64;
    /// Largest remaining work of a packet of `port`, 0 when it is empty.
    fn largest_work(&self, port: usize) -> u64;
    /// Smallest value of a packet of `port`, `None` when it is empty.
    fn smallest_value(&self, port: usize) -> Option<u64>;

    /// Whether no packet fits.
    #[inline]
    fn is_full(&self) -> bool {
        self.stored() >= self.capacity()
    }
}

/// Queues that a run can change.
pub trait Storage: Queues {
    /// Puts a packet into its queue. There must be space.
    fn insert(&mut self, arrival: &Arrival);
    /// Removes a packet from the queue of `port`, which must not be empty. Returns its index in the
    /// list of arrivals, or `None` if the queues do not keep single packets.
    fn remove(&mut self, port: usize, victim: Victim) -> Option<usize>;
    /// Does the transmission phase. Returns the numbers of packets and of value transmitted.
    fn transmit(&mut self) -> (u64, u64);
    /// Lets `slots` slots pass. All queues must be empty.
    fn skip(&mut self, slots: u64);
    /// Removes every packet and calls `lost` with its index, if the queues keep single packets.
    fn clear(&mut self, lost: impl FnMut(usize));
}

/// The port that compares greatest; of several `own`, then the lowest.
#[inline]
pub(super) fn argmax_by(
    ports: usize,
    own: usize,
    compare: impl Fn(usize, usize) -> Ordering,
) -> usize {
    let mut best = own;
    for port in 0..ports {
        if compare(port, best) == Ordering::Greater {
            best = port;
        }
    }
    best
}
