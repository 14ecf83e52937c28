//! A switch with given arrivals: there are no senders, so losses do not change the arrivals.

use super::driven::DrivenSwitch;
use super::{Admission, Loss, Policy, SharedBuffer, Switch, SwitchId, SwitchSettings, View};
use crate::engine::clock::ClockOffset;
use crate::engine::packet::{Packet, PacketId, PacketKind, SizeClass};
use crate::engine::topology::MAX_QUEUES;
use crate::units::{Instant, Rate};

/// Outcome of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet waits or is being sent.
    Stored,
    /// The last bit of the packet has left.
    Sent,
    /// The packet was lost.
    Lost(Loss),
}

/// A [`Switch`] with one queue per port, driven arrival by arrival: the model of the theorems with
/// bytes and time. Packets leave at line rate, before packets that arrive at the same instant, the
/// lowest port first.
#[derive(Clone, Debug)]
pub struct OpenLoop<P> {
    driven: DrivenSwitch<P>,
    fates: Vec<Fate>,
}

impl<P: Policy> OpenLoop<P> {
    /// Creates an empty switch.
    ///
    /// # Panics
    /// When there are no ports, or more than 65,536.
    pub fn new(ports: usize, buffer_bytes: u64, rate: Rate, policy: P) -> OpenLoop<P> {
        assert!(ports > 0, "a switch has ports");
        assert!(ports <= MAX_QUEUES, "a switch has at most 65,536 ports");
        let settings = SwitchSettings::plain(ports, buffer_bytes, rate);
        let switch = Switch::new(SwitchId(0), ClockOffset::default(), &settings, policy);
        let switch = switch.expect("every packet counts, so that every policy fits");
        OpenLoop {
            driven: DrivenSwitch::new(switch, rate, 0),
            fates: Vec::new(),
        }
    }

    /// Adds the arrival of a packet of `bytes` for `port` at the instant `at`. Returns the number of
    /// the arrival, counted from 0.
    ///
    /// # Panics
    /// When there is no such port, when `at` lies in the past, when `bytes` exceeds 65,535, or when
    /// 2^32 packets have arrived.
    pub fn arrive(&mut self, at: Instant, port: usize, bytes: u64) -> usize {
        self.run_until(at);
        let arrival = self.fates.len();
        self.fates.push(Fate::Stored);
        let wire_bytes = u16::try_from(bytes).expect("a packet has at most 65,535 bytes");
        let size = (wire_bytes, SizeClass::Odd);
        let queue = u16::try_from(port).expect("the switch has such a port");
        let mut packet = Packet::new(PacketKind::Data, 0, queue, size, at);
        packet.sequence = u32::try_from(arrival).expect("arrivals are counted in 32 bits");
        let (id, admission) = self.driven.arrive(at, packet, &mut ());
        self.dispose_of_pushed_out();
        if let Admission::Lost(loss) = admission {
            self.dispose(id, Fate::Lost(loss));
        }
        arrival
    }

    /// Lets packets leave up to and at the instant `at`.
    ///
    /// # Panics
    /// When `at` lies in the past.
    pub fn run_until(&mut self, at: Instant) {
        assert!(at >= self.driven.now, "time goes back");
        let left = |driven: &DrivenSwitch<P>| driven.next_departure().map(|(left, _)| left);
        while left(&self.driven).is_some_and(|left| left <= at) {
            self.depart();
        }
        self.driven.advance_to(at);
    }

    /// Lets every packet leave.
    pub fn finish(&mut self) {
        while self.depart() {}
    }

    /// Returns the shared buffer.
    pub fn buffer(&self) -> &SharedBuffer {
        self.driven.switch.buffer()
    }

    /// Returns the policy.
    pub fn policy(&self) -> &P {
        self.driven.switch.policy()
    }

    /// Returns the view that the policy would see now.
    pub fn view(&self) -> View<'_> {
        View {
            buffer: self.driven.switch.buffer(),
            now: self.driven.now,
            rate: self.driven.rate,
        }
    }

    /// Returns the outcome of every arrival so far, in order.
    pub fn fates(&self) -> &[Fate] {
        &self.fates
    }

    /// Returns the number of arrivals whose last bit has left.
    pub fn sent(&self) -> u64 {
        let sent = self.fates.iter().filter(|fate| **fate == Fate::Sent);
        sent.count() as u64
    }

    /// Lets the next packet leave. Returns false if none is being sent.
    fn depart(&mut self) -> bool {
        let Some((id, _)) = self.driven.depart(&mut ()) else {
            return false;
        };
        self.dispose_of_pushed_out();
        self.dispose(id, Fate::Sent);
        true
    }

    fn dispose(&mut self, id: PacketId, fate: Fate) {
        let packets = &mut self.driven.packets;
        self.fates[packets[id].sequence as usize] = fate;
        packets.remove(id);
    }

    fn dispose_of_pushed_out(&mut self) {
        while let Some(id) = self.driven.switch.take_lost() {
            self.dispose(id, Fate::Lost(Loss::PushedOut));
        }
    }
}
