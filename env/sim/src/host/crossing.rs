//! A packet as its headers describe it.

use super::Hosts;
use crate::engine::packet::{Packet, PacketDirection, PacketKind};
use crate::engine::topology::Topology;
use crate::units::Time;

/// What a packet of TCP is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentKind {
    /// It carries payload.
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// The first packet of a handshake (RFC 9293 §3.5).
    Syn,
    /// Its answer.
    SynAck,
    /// The third packet of a handshake.
    HandshakeAck,
}

/// A packet on its way through a switch, with what its headers say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// Its flow, by its number in the order of starts.
    pub flow: u32,
    /// Which end of its flow it comes from.
    pub direction: PacketDirection,
    /// The host that has sent it.
    pub from: u16,
    /// The host that it goes to.
    pub to: u16,
    /// What it is for.
    pub kind: SegmentKind,
    /// Data: when the segment left the sender. Acknowledgement: the time that it echoes.
    pub stamp: Time,
    /// Bytes of the flow before its payload.
    pub offset: u64,
    /// Bytes of its payload.
    pub payload: u32,
    /// Its payload ends the flow.
    pub is_last: bool,
    /// Acknowledgement: bytes of the flow that the receiver has in order.
    pub acknowledged: u64,
    /// Acknowledgement: bytes `[from, to)` that the receiver has besides (RFC 2018), the most recent first.
    pub sack: [Option<(u64, u64)>; 3],
    /// Switches may mark it, if both ends have agreed on it.
    pub markable: bool,
    /// A switch has marked it: Congestion Experienced (RFC 3168 §5).
    pub marked: bool,
    /// Acknowledgement: it echoes a mark (RFC 3168 §6.1).
    pub echoes_mark: bool,
}

impl<T: Topology> Hosts<T> {
    /// A packet as its headers describe it; `None` for a pause frame.
    pub(crate) fn crossing(&self, packet: &Packet) -> Option<Crossing> {
        let kind = match packet.kind {
            PacketKind::Data => SegmentKind::Data,
            PacketKind::Ack => SegmentKind::Ack,
            PacketKind::Syn => SegmentKind::Syn,
            PacketKind::SynAck => SegmentKind::SynAck,
            PacketKind::HandshakeAck => SegmentKind::HandshakeAck,
            PacketKind::Pause => return None,
        };
        let (data, ack) = (kind == SegmentKind::Data, kind == SegmentKind::Ack);
        let direction = packet.kind.direction();
        let (from, to) = self.ends_of(packet.flow, direction);
        let (size, mss) = (
            self.flows[packet.flow as usize].sender.size(&self.settings),
            u64::from(self.settings.mss),
        );
        let bytes = |segments: u32| (u64::from(segments) * mss).min(size);
        let offset = if data { bytes(packet.sequence) } else { 0 };
        let payload = if data { mss.min(size - offset) } else { 0 };
        let blocks = self.sacks.get(packet.sack).unwrap_or_default();
        Some(Crossing {
            flow: packet.flow,
            direction,
            from,
            to,
            kind,
            stamp: packet.stamp,
            offset,
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            is_last: data && offset + payload == size,
            acknowledged: if ack { bytes(packet.sequence) } else { 0 },
            sack: blocks.map(|(from, to)| (from < to).then(|| (bytes(from), bytes(to)))),
            markable: data && packet.flags.accepts_marks(),
            marked: data && packet.flags.marked(),
            echoes_mark: ack && packet.flags.marked(),
        })
    }
}
