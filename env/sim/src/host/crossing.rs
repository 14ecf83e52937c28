//! Packets as their headers describe them.

use super::Hosts;
use crate::engine::packet::{Packet, PacketDirection, PacketKind};
use crate::engine::topology::Topology;
use crate::units::Instant;

/// Kind of a TCP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentKind {
    /// A segment with payload.
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// The first packet of a handshake (RFC 9293 §3.5).
    Syn,
    /// The answer to a SYN.
    SynAck,
    /// The third packet of a handshake.
    HandshakeAck,
}

/// A packet that passes a switch, with the content of its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// Flow of the packet, by number in the order of starts.
    pub flow: u32,
    /// Direction of the packet within its flow.
    pub direction: PacketDirection,
    /// Host that has sent the packet.
    pub from: u16,
    /// Destination host of the packet.
    pub to: u16,
    /// Kind of the packet.
    pub kind: SegmentKind,
    /// Data: time at which the segment left the sender. Acknowledgement: the time that it echoes.
    pub stamp: Instant,
    /// Number of bytes of the flow before the payload.
    pub offset: u64,
    /// Size of the payload, bytes.
    pub payload: u32,
    /// True if the payload ends the flow.
    pub is_last: bool,
    /// Acknowledgement: number of bytes of the flow that the receiver has in order.
    pub acknowledged: u64,
    /// Acknowledgement: further bytes `[from, to)` that the receiver has (RFC 2018), the most recent first.
    pub sack: [Option<(u64, u64)>; 3],
    /// True if switches may mark the packet, provided that both ends have agreed on ECN.
    pub markable: bool,
    /// True if a switch has marked the packet: Congestion Experienced (RFC 3168 §5).
    pub marked: bool,
    /// Acknowledgement: true if it echoes a mark (RFC 3168 §6.1).
    pub echoes_mark: bool,
}

impl<T: Topology> Hosts<T> {
    /// Returns a packet as its headers describe it; `None` for a pause frame.
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
