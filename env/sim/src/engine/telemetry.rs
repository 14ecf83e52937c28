//! In-band network telemetry (INT): records that switch ports add to the packets that they send, and the
//! store of these records.
//!
//! Few flows use it, so a packet has one bit for it. The records are stored apart and cost nothing if no
//! packet carries any.

use super::ids::{PacketId, SwitchId};
use crate::scenario::MAX_RECORDS;
use crate::units::{Instant, Rate};

/// Maximum number of records of a packet: those of its path, and of the way back if acknowledgements are stamped
/// too.
pub const MAX_HOPS: usize = MAX_RECORDS;

/// A port of a network, by switch and number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortId(u32);

impl PortId {
    /// # Panics
    /// When the switch has more than 65,536 ports.
    pub(crate) fn of(switch: SwitchId, port: usize) -> PortId {
        let port = u16::try_from(port).expect("a switch has at most 65,536 ports");
        PortId(u32::from(switch.0) << 16 | u32::from(port))
    }
}

/// State of a port at the instant at which its scheduler takes a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopRecord {
    /// Port that wrote the record.
    pub port: PortId,
    /// Bytes in the queue of the packet, without the packet.
    pub queue_bytes: u64,
    /// Bytes in all queues of the port, without the packet.
    pub port_bytes: u64,
    /// Bytes that the port has sent before the packet, from all queues.
    pub sent_bytes: u64,
    /// Time of the record.
    pub at: Instant,
    /// Rate of the port's line.
    pub rate: Rate,
}

/// Records of a packet, in the order of the hops.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathRecords {
    hops: [HopRecord; MAX_HOPS],
    count: u8,
}

impl Default for HopRecord {
    /// Returns an empty record, which no port writes.
    fn default() -> HopRecord {
        HopRecord {
            port: PortId::default(),
            queue_bytes: 0,
            port_bytes: 0,
            sent_bytes: 0,
            at: Instant::ZERO,
            rate: Rate(0),
        }
    }
}

impl PathRecords {
    /// Returns the records, in the order of the hops.
    pub fn hops(&self) -> &[HopRecord] {
        &self.hops[..usize::from(self.count)]
    }

    /// Adds a record if there is room. Returns true if there was.
    pub(crate) fn push(&mut self, record: HopRecord) -> bool {
        let Some(place) = self.hops.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = record;
        self.count += 1;
        true
    }

    /// Replaces the record of a hop, or adds the record behind the last one.
    pub(crate) fn set(&mut self, hop: usize, record: HopRecord) {
        match self.hops[..usize::from(self.count)].get_mut(hop) {
            Some(place) => *place = record,
            None => {
                self.push(record);
            }
        }
    }
}

/// Handle of the records of a packet, or of none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordsHandle(u32);

impl RecordsHandle {
    pub(crate) const NONE: RecordsHandle = RecordsHandle(u32::MAX);
}

impl Default for RecordsHandle {
    fn default() -> RecordsHandle {
        RecordsHandle::NONE
    }
}

/// The records of all packets in flight.
#[derive(Clone, Default, Debug)]
pub(crate) struct RecordStore {
    records: Vec<PathRecords>,
    vacant: Vec<RecordsHandle>,
    /// Handle by packet; undefined for a packet that carries no records.
    of_packet: Vec<RecordsHandle>,
}

impl RecordStore {
    /// Reserves a place for the records of a packet, which is empty at first.
    pub(crate) fn insert(&mut self) -> RecordsHandle {
        match self.vacant.pop() {
            Some(handle) => {
                self.records[handle.0 as usize] = PathRecords::default();
                handle
            }
            None => {
                let place = u32::try_from(self.records.len());
                self.records.push(PathRecords::default());
                RecordsHandle(place.expect("fewer than packets"))
            }
        }
    }

    pub(crate) fn remove(&mut self, handle: RecordsHandle) {
        self.vacant.push(handle);
    }

    /// Assigns the records to the packet.
    pub(crate) fn give(&mut self, id: PacketId, handle: RecordsHandle) {
        let place = id as usize;
        if place >= self.of_packet.len() {
            self.of_packet.resize(place + 1, RecordsHandle::NONE);
        }
        self.of_packet[place] = handle;
    }

    /// Returns the records of a packet that carries some.
    pub(crate) fn of(&self, id: PacketId) -> RecordsHandle {
        self.of_packet[id as usize]
    }

    pub(crate) fn get(&self, handle: RecordsHandle) -> &PathRecords {
        &self.records[handle.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, handle: RecordsHandle) -> &mut PathRecords {
        &mut self.records[handle.0 as usize]
    }

    /// Returns the number of packets that carry records.
    pub(crate) fn live(&self) -> usize {
        self.records.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_come_empty() {
        let mut store = RecordStore::default();
        let [first, second] = [store.insert(), store.insert()];
        store.give(7, first);
        store.give(3, second);
        store.get_mut(first).push(HopRecord::default());
        assert_eq!((store.of(7), store.of(3)), (first, second));
        assert_eq!(store.get(first).hops().len(), 1);
        store.remove(first);
        assert_eq!(store.live(), 1);
        let third = store.insert();
        assert_eq!((third, store.live()), (first, 2));
        assert!(store.get(third).hops().is_empty());
    }

    #[test]
    fn a_packet_has_room_for_eight_hops() {
        let mut path = PathRecords::default();
        let record = |sent_bytes| HopRecord {
            sent_bytes,
            ..HopRecord::default()
        };
        for hop in 0..MAX_HOPS as u64 {
            assert!(path.push(record(hop)));
        }
        assert!(!path.push(record(9)));
        path.set(2, record(100));
        assert_eq!(path.hops()[2], record(100));
        assert_eq!(path.hops().len(), MAX_HOPS);
    }
}
