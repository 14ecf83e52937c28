//! The path between the scheduler of a port and its line: the telemetry that packets collect (INT), and
//! a queue of the device that is not counted.
//!
//! Most switches have neither.

use super::mmu::Mmu;
use super::{Admission, EXTRAS, PacketView, Policy, Switch, SwitchObserver};
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketQueue, PacketStore, SizeClass};
use crate::engine::telemetry::{HopRecord, PortId};
use crate::units::{Instant, Rate};

/// Stamps packets that carry records when a scheduler takes them from their queues.
#[derive(Clone, Debug)]
pub(crate) struct Meters {
    ports: Vec<Meter>,
    /// Number of bytes that a record adds to its packet.
    record_bytes: u16,
    /// True if acknowledgements that carry records get more of them.
    stamps_acks: bool,
}

/// Meter of one port.
#[derive(Clone, Copy, Debug)]
struct Meter {
    rate: Rate,
    /// Bytes that the scheduler has taken.
    sent: u64,
}

impl Meters {
    /// Creates meters for ports of these rates.
    pub(crate) fn new(
        rates: impl Iterator<Item = Rate>,
        record_bytes: u16,
        stamps_acks: bool,
    ) -> Meters {
        Meters {
            ports: rates.map(|rate| Meter { rate, sent: 0 }).collect(),
            record_bytes,
            stamps_acks,
        }
    }

    fn stamps(&self, packet: &Packet) -> bool {
        packet.flags.carries_records() && (packet.kind == PacketKind::Data || self.stamps_acks)
    }
}

/// FIFO queues of devices below the queues of a switch, one for each port. In ns-3 a queue discipline
/// hands packets to such a queue as long as it has room.
#[derive(Clone, Debug)]
pub(super) struct DeviceQueues {
    /// Largest number of packets in each queue, without the one in service.
    capacity: u32,
    ports: Vec<DeviceQueue>,
}

#[derive(Clone, Copy, Default, Debug)]
struct DeviceQueue {
    packets: PacketQueue,
    length: u32,
}

impl DeviceQueues {
    /// Creates queues of `capacity` packets; `None` if that is 0.
    pub(super) fn new(capacity: u32, ports: usize) -> Option<Box<DeviceQueues>> {
        (capacity > 0).then(|| {
            Box::new(DeviceQueues {
                capacity,
                ports: vec![DeviceQueue::default(); ports],
            })
        })
    }

    fn has_room(&self, port: usize) -> bool {
        self.ports[port].length < self.capacity
    }

    fn push(&mut self, port: usize, id: PacketId, packets: &mut PacketStore) {
        let queue = &mut self.ports[port];
        queue.packets.push_back(packets, id);
        queue.length += 1;
    }

    fn pop(&mut self, port: usize, packets: &PacketStore) -> Option<PacketId> {
        let queue = &mut self.ports[port];
        let id = queue.packets.pop_front(packets)?;
        queue.length -= 1;
        Some(id)
    }
}

/// Telemetry.
impl<P: Policy> Switch<P> {
    /// Enables stamping of packets that carry records; to be called before the first packet.
    pub(crate) fn measure(&mut self, meters: Meters) {
        debug_assert_eq!(meters.ports.len(), self.ports.len());
        self.meters = Some(Box::new(meters));
        self.add_extras();
    }

    /// Stamps a packet that the scheduler has taken from its queue. The packet no longer counts there,
    /// unless packets in service do.
    #[cold]
    #[inline(never)]
    pub(super) fn stamp(&mut self, packets: &mut PacketStore, id: PacketId, now: Instant) {
        let seen = self.packet_view(&packets[id]);
        let own = match self.outside_buffer {
            0 => seen.bytes,
            _ => 0,
        };
        let Some(meters) = &mut self.meters else {
            return;
        };
        let meter = &mut meters.ports[seen.port];
        let record = HopRecord {
            port: PortId::of(self.id, seen.port),
            queue_bytes: self.buffer.queue(seen.queue) - own,
            port_bytes: self.buffer.port(seen.port) - own,
            sent_bytes: meter.sent,
            at: now,
            rate: meter.rate,
        };
        meter.sent += seen.bytes;
        if !meters.stamps(&packets[id]) {
            return;
        }
        let handle = packets.records.of(id);
        packets.records.get_mut(handle).push(record);
        if meters.record_bytes > 0 {
            let packet = &mut packets[id];
            packet.wire_bytes += meters.record_bytes;
            packet.class = SizeClass::Odd;
        }
    }

    /// Returns the bytes with which a packet in service counts in the buffer: its size on arrival.
    pub(crate) fn counted_bytes(&self, packet: &Packet) -> u16 {
        match &self.meters {
            Some(meters) if meters.stamps(packet) => packet.wire_bytes - meters.record_bytes,
            _ => packet.wire_bytes,
        }
    }
}

/// Queues of devices.
impl<P: Policy> Switch<P> {
    /// Returns the queues of waiting packets, including those of devices.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &PacketQueue> {
        let devices = self.devices.iter().flat_map(|devices| &devices.ports);
        self.queues
            .iter()
            .chain(devices.map(|device| &device.packets))
            .chain(self.mmu().into_iter().flat_map(Mmu::control))
    }

    /// Handles a packet that has been enqueued: passes on the packets that the device has room for.
    #[cold]
    #[inline(never)]
    pub(super) fn arrive_above_device<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        packet: PacketView,
        now: Instant,
        observer: &mut O,
    ) -> Admission {
        self.queues[packet.queue].append(packets, id);
        self.ports[packet.port].length += 1;
        match self.feed_device(packets, packet.port, now, observer) {
            Some(next) => {
                debug_assert_eq!(next, id, "an idle port has nothing else to send");
                observer.served(id, now, false);
                Admission::Served
            }
            None => {
                observer.waits(id, now);
                Admission::Queued
            }
        }
    }

    /// As [`sent`](Switch::sent), for a port with a device queue.
    #[cold]
    #[inline(never)]
    pub(super) fn sent_by_device<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        packet: PacketView,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        let port = packet.port;
        self.counters.forwarded += 1;
        observer.departed(self.id, self.view(now), packet);
        let devices = self.devices.as_mut();
        let below = devices.and_then(|devices| devices.pop(port, packets));
        self.ports[port].sending = below.is_some();
        let next = self.feed_device(packets, port, now, observer);
        let next = below.or(next);
        if let Some(next) = next {
            observer.served(next, now, true);
        }
        if self.pushes_out() {
            self.expel(packets, now, observer);
        }
        next
    }

    /// Moves packets from the queues of a port to its device as long as the device has room. Returns
    /// the one that the device begins to send, if it was idle.
    fn feed_device<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        port: usize,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        let mut begun = None;
        loop {
            let sending = self.ports[port].sending;
            let devices = self.devices.as_ref()?;
            if sending && !devices.has_room(port) {
                return begun;
            }
            let Some(id) = self.take_scheduled(packets, port, now, observer) else {
                return begun;
            };
            if sending {
                self.devices.as_mut()?.push(port, id, packets);
            } else {
                self.ports[port].sending = true;
                begun = Some(id);
            }
        }
    }

    /// Takes the packet that the scheduler of a port chooses. For the policy, the packet has left.
    fn take_scheduled<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        port: usize,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        let mut id = self.next_of_port::<EXTRAS>(packets, port)?;
        if self.aqm.is_some() {
            id = self.aqm_next(packets, id, now, observer)?;
        }
        let packet = self.packet_view(&packets[id]);
        if self.aqm.is_some() {
            self.aqm_on_change(packet.queue, now);
        }
        self.buffer.release(packet.queue, packet.bytes, now);
        self.ask(now, |policy, view| policy.on_departure(view, packet));
        if self.aqm.is_some() {
            self.aqm_on_departure(packet.queue, now);
        }
        if self.meters.is_some() {
            self.stamp(packets, id, now);
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ClockOffset;
    use crate::scenario::Scenario;
    use crate::switch::policy::DynamicThreshold;
    use crate::switch::{SwitchId, SwitchSettings};
    use crate::units::Duration;

    const RATE: Rate = Rate(10_000_000_000);

    /// A manually driven switch, all of whose packets go to port 1.
    struct Bench {
        switch: Switch<DynamicThreshold>,
        packets: PacketStore,
        sending: Option<PacketId>,
    }

    impl Bench {
        fn new(changes: &[&str], stamps_acks: bool, record_bytes: u16) -> Bench {
            let mut scenario = Scenario::default();
            for change in changes {
                scenario.set(change).unwrap();
            }
            scenario.validate().unwrap();
            let settings = SwitchSettings::new(&scenario, 4, 100_000);
            let clock_offset = ClockOffset::of(Duration::ZERO);
            let policy = DynamicThreshold { alpha: 1.0 };
            let mut switch = Switch::new(SwitchId(3), clock_offset, &settings, policy).unwrap();
            switch.measure(Meters::new(
                [RATE; 4].into_iter(),
                record_bytes,
                stamps_acks,
            ));
            Bench {
                switch,
                packets: PacketStore::default(),
                sending: None,
            }
        }

        fn arrive(&mut self, kind: PacketKind, queue: u16, bytes: u16, at_us: u64) -> PacketId {
            let now = Instant::from_us(at_us);
            let packet = Packet::new(kind, 0, queue, (bytes, SizeClass::Odd), now);
            let id = self.packets.insert(packet);
            let records = self.packets.records.insert();
            self.packets.carry(id, records);
            match self.switch.arrive(&mut self.packets, id, now, &mut ()) {
                Admission::Served => self.sending = Some(id),
                Admission::Queued => {}
                Admission::Lost(loss) => panic!("{loss:?}"),
            }
            id
        }

        /// Completes the packet on the line. Returns the packet that follows it.
        fn send(&mut self, at_us: u64) -> Option<PacketId> {
            let sending = self.sending.take().expect("a packet is on the line");
            let now = Instant::from_us(at_us);
            self.sending = self.switch.sent(&mut self.packets, sending, now, &mut ());
            self.sending
        }

        fn records(&self, id: PacketId) -> Vec<(u64, u64, u64)> {
            let path = self.packets.records.get(self.packets.records.of(id));
            let fields = |hop: &HopRecord| {
                assert_eq!((hop.port, hop.rate), (PortId::of(SwitchId(3), 1), RATE));
                (hop.at.as_ns() / 1_000, hop.queue_bytes, hop.sent_bytes)
            };
            path.hops().iter().map(fields).collect()
        }

        fn occupancy(&self) -> u64 {
            self.switch.buffer().occupancy()
        }
    }

    /// The stamp records the state when the scheduler takes a packet: the queue without the packet, and
    /// all bytes that the port sent before.
    #[test]
    fn packets_are_stamped_when_their_turn_comes() {
        for counts in ["count_in_service=true", "count_in_service=false"] {
            let mut bench = Bench::new(&[counts], false, 0);
            let data = PacketKind::Data;
            let first = bench.arrive(data, 1, 1_000, 5);
            let second = bench.arrive(data, 1, 700, 6);
            let ack = bench.arrive(PacketKind::Ack, 1, 64, 7);
            let last = bench.arrive(data, 1, 300, 8);
            assert_eq!(bench.records(first), [(5, 0, 0)]);
            assert_eq!(bench.records(second), []);
            assert_eq!(bench.send(10), Some(second));
            assert_eq!(bench.records(second), [(10, 364, 1_000)]);
            assert_eq!(bench.send(11), Some(ack));
            assert_eq!(bench.records(ack), []);
            assert_eq!(bench.send(12), Some(last));
            assert_eq!(bench.records(last), [(12, 0, 1_764)]);
            assert_eq!(bench.send(13), None);
            assert_eq!(bench.occupancy(), 0);
        }
    }

    /// Records hold the length of the packet's queue and the sent bytes of the port.
    #[test]
    fn queues_of_a_port_are_told_apart() {
        let mut bench = Bench::new(&["queues_per_port=2"], true, 0);
        bench.arrive(PacketKind::Data, 2, 1_000, 0);
        let second = bench.arrive(PacketKind::Ack, 2, 600, 0);
        let third = bench.arrive(PacketKind::Data, 3, 500, 0);
        bench.arrive(PacketKind::Data, 3, 400, 0);
        let order = [bench.send(1), bench.send(2)];
        assert_eq!(order, [Some(second), Some(third)]);
        assert_eq!(bench.records(second), [(1, 0, 1_000)]);
        assert_eq!(bench.records(third), [(2, 400, 1_600)]);
    }

    #[test]
    fn records_enlarge_their_packets_behind_the_buffer() {
        for counts in ["count_in_service=true", "count_in_service=false"] {
            let mut bench = Bench::new(&[counts], false, 8);
            let first = bench.arrive(PacketKind::Data, 1, 1_000, 0);
            let second = bench.arrive(PacketKind::Data, 1, 1_000, 0);
            assert_eq!(bench.packets[first].wire_bytes, 1_008);
            assert_eq!(bench.packets[second].wire_bytes, 1_000);
            bench.send(1);
            bench.send(2);
            assert_eq!(bench.packets[second].wire_bytes, 1_008);
            assert_eq!(bench.records(second), [(1, 0, 1_000)]);
            assert_eq!(bench.occupancy(), 0);
        }
    }

    /// Two packets behind the one on the line count nowhere.
    #[test]
    fn the_device_has_packets_that_nobody_sees() {
        let settings = ["count_in_service=false", "device_fifo_packets=2"];
        let mut bench = Bench::new(&settings, false, 0);
        let ids: Vec<PacketId> = (0..5)
            .map(|at| bench.arrive(PacketKind::Data, 1, 1_000, at))
            .collect();
        assert_eq!(bench.occupancy(), 2_000);
        // The scheduler took them on arrival.
        assert_eq!(bench.records(ids[2]), [(2, 0, 2_000)]);
        assert_eq!(bench.records(ids[3]), []);
        assert_eq!(bench.send(10), Some(ids[1]));
        assert_eq!(bench.records(ids[3]), [(10, 1_000, 3_000)]);
        assert_eq!(bench.occupancy(), 1_000);
        let rest: Vec<_> = (11..15).map(|at| bench.send(at)).collect();
        assert_eq!(rest, [Some(ids[2]), Some(ids[3]), Some(ids[4]), None]);
        assert_eq!(bench.records(ids[4]), [(11, 0, 4_000)]);
        assert_eq!(bench.occupancy(), 0);
        assert_eq!(
            bench
                .switch
                .waiting()
                .filter(|queue| !queue.is_empty())
                .count(),
            0
        );
    }
}
