//! Writes the packets that arrive at a simulated switch to a capture.

use std::fmt;
use std::io::{self, Write};

use super::addresses::{MAX_SENDS, source_port};
use super::frame::{Extra, MAX_PAYLOAD, Style};
use super::pcap::PcapWriter;
use crate::engine::packet::PacketDirection;
use crate::host::{Crossing, HostObserver, SegmentKind};
use crate::network::{Observer, SimError};
use crate::scenario::Scenario;
use crate::switch::{SwitchId, SwitchObserver};
use crate::traffic::Trace;
use crate::units::Instant;

/// Writes every packet that arrives at the one switch of a simulation to a capture. It does so when the last
/// bit has arrived and before the packet is admitted, as the testbed does.
///
/// A frame has the headers that Linux would give the packet, with correct checksums. The payload, which is
/// zeros, is left out of the capture, but its length is stated. The first sequence number of both directions
/// is 0. The capture lacks two things that the simulator's senders do not have: the end of a connection
/// (FIN), and the answer to an echoed mark (CWR). Timestamps are milliseconds. Data packets echo the latest
/// timestamp that has passed the switch in the other direction.
pub struct SwitchCapture<'a> {
    pcap: PcapWriter<&'a mut dyn Write>,
    style: Style,
    /// Per flow: the port, and the latest timestamps of the sender and of the receiver, milliseconds.
    flows: Vec<(u16, [u32; 2])>,
    frame: Vec<u8>,
    result: io::Result<()>,
}

impl fmt::Debug for SwitchCapture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchCapture")
            .field("flows", &self.flows.len())
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

impl<'a> SwitchCapture<'a> {
    /// Creates a capture of a simulation of `trace` that writes to `out`.
    ///
    /// # Errors
    /// When the scenario has several switches or packets other than TCP over Ethernet, or a host sends more
    /// flows than it has ports. A failure of `out` is returned by [`finish`](SwitchCapture::finish).
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        out: &'a mut dyn Write,
    ) -> Result<SwitchCapture<'a>, SimError> {
        scenario.validate()?;
        scenario.require_single()?;
        trace.validate(scenario.network.ports)?;
        check(scenario)?;
        let mut flows: Vec<_> = trace.flows.iter().collect();
        flows.sort_by_key(|flow| flow.start);
        let mut sent = vec![0; scenario.port_count()];
        let ports = flows.into_iter().map(|flow| {
            let place: &mut usize = &mut sent[flow.src as usize];
            *place += 1;
            let port = source_port(*place - 1).ok_or_else(|| {
                SimError::Network(format!(
                    "host {} sends more than {MAX_SENDS} flows, which each need a port in a capture; use a \
                     shorter trace",
                    flow.src
                ))
            });
            Ok((port?, [0; 2]))
        });
        let flows = ports.collect::<Result<_, SimError>>()?;
        let (pcap, result) = PcapWriter::started(out);
        Ok(SwitchCapture {
            pcap,
            style: Style::of(scenario),
            flows,
            frame: Vec::new(),
            result,
        })
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// When the output has failed at any time. The capture may then end within a packet.
    pub fn finish(self) -> io::Result<()> {
        self.result?;
        self.pcap.finish()
    }

    fn write(&mut self, now: Instant, packet: &Crossing) -> io::Result<()> {
        let (port, latest) = &mut self.flows[packet.flow as usize];
        let own = match packet.kind {
            SegmentKind::Data => milliseconds(packet.stamp),
            _ => milliseconds(now),
        };
        let (place, other) = match packet.direction {
            PacketDirection::Forward => (0, latest[1]),
            PacketDirection::Reverse => (1, milliseconds(packet.stamp)),
        };
        latest[place] = own;
        let extra = Extra {
            port: *port,
            timestamps: (own, other),
        };
        let length = self.style.write(packet, extra, &mut self.frame);
        self.pcap.write(now.as_ns(), &self.frame, length)
    }
}

/// Checks that all packets are TCP and fit into IPv4.
fn check(scenario: &Scenario) -> Result<(), SimError> {
    let problem = if scenario.has_rdma() || scenario.has_lossless() {
        "a capture is of TCP over Ethernet; this scenario has RDMA or lossless packets".to_owned()
    } else if scenario.packets.mss > MAX_PAYLOAD {
        format!(
            "mss = {}: a packet of IPv4 has room for {MAX_PAYLOAD} bytes; a capture needs at most that",
            scenario.packets.mss
        )
    } else {
        return Ok(());
    };
    Err(SimError::Network(problem))
}

/// Returns the milliseconds of a 32-bit clock, which wraps.
#[expect(clippy::cast_possible_truncation, reason = "it wraps")]
fn milliseconds(time: Instant) -> u32 {
    (time.as_ns() / 1_000_000) as u32
}

impl SwitchObserver for SwitchCapture<'_> {}

impl HostObserver for SwitchCapture<'_> {}

impl Observer for SwitchCapture<'_> {
    fn crossing(&mut self, _at: SwitchId, now: Instant, packet: impl Fn() -> Option<Crossing>) {
        if self.result.is_ok()
            && let Some(packet) = packet()
        {
            self.result = self.write(now, &packet);
        }
    }
}
