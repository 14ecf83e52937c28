//! The queues: a policy may read [`Queues`], and a run changes [`Storage`].

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
    /// Index in the list of arrivals.
    pub index: usize,
    /// The packet.
    pub packet: Packet,
}

impl Arrival {
    /// Returns the port that the packet leaves by.
    #[inline]
    pub fn port(&self) -> usize {
        self.packet.port as usize
    }
}

/// Choice of the packet of a queue that is pushed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The last packet in the order of the queue.
    Last,
    /// The packet with the largest remaining work; of several, the one that arrived last.
    LargestWork,
    /// The packet with the smallest value; of several, the one that arrived last.
    SmallestValue,
}

/// The state of the queues that a policy may read.
pub trait Queues {
    /// Returns the number of ports (`N`).
    fn ports(&self) -> usize;
    /// Returns the number of packets that fit (`B`).
    fn capacity(&self) -> u64;
    /// Returns the number of packets now stored (`Q`).
    fn stored(&self) -> u64;
    /// Returns the number of packets in the queue of `port` (`q_i`).
    fn len(&self, port: usize) -> u64;
    /// Returns the length of the longest queue.
    fn longest(&self) -> u64;
    /// Returns the longest queue, with `arrival` counted in its own queue. Of several it is the one
    /// with the largest packet, then the arrival's own, then the lowest.
    fn longest_with(&self, arrival: &Arrival) -> usize;
    /// Returns the remaining work of all packets of `port` (`W_i`).
    fn work(&self, port: usize) -> u64;
    /// Returns the value of all packets of `port` (`V_i`).
    fn value(&self, port: usize) -> u64;
    /// Returns the largest remaining work of a packet of `port`, 0 when it is empty.
    fn largest_work(&self, port: usize) -> u64;
    /// Returns the smallest value of a packet of `port`, `None` when it is empty.
    fn smallest_value(&self, port: usize) -> Option<u64>;

    /// Returns true if no packet fits.
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
    /// Runs the transmission phase. Returns the number of packets and the value transmitted.
    fn transmit(&mut self) -> (u64, u64);
    /// Advances time by `slots` slots. All queues must be empty.
    fn skip(&mut self, slots: u64);
    /// Removes every packet and calls `lost` with its index, if the queues keep single packets.
    fn clear(&mut self, lost: impl FnMut(usize));
}

/// Returns the port that compares greatest; of several `own`, then the lowest.
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
