//! Writes what comes to a simulated switch.

use std::fmt;
use std::io::{self, Write};

use super::addresses::{MOST_SENDS, source_port};
use super::frame::{Extra, MOST_PAYLOAD, Style};
use super::pcap::PcapWriter;
use crate::engine::packet::PacketDirection;
use crate::host::{Crossing, HostObserver, SegmentKind};
use crate::network::{Observer, SimError};
use crate::scenario::Scenario;
use crate::switch::{SwitchId, SwitchObserver};
use crate::traffic::Trace;
use crate::units::Time;

/// Writes every packet that comes to the one switch of a simulation to a capture, when its last bit is
/// there and before it is admitted, as the testbed does.
///
/// A frame has the headers that the packet would have from Linux, with right checksums; its payload, which
/// is zeros, is left out of the capture (its length is not). The first sequence number of both directions
/// is 0. What senders of the simulator do not have is not in it: the end of a connection (FIN), and the
/// answer to an echoed mark (CWR). Timestamps are milliseconds; data echo the latest one that has passed the
/// switch in the other direction.
pub struct SwitchCapture<'a> {
    pcap: PcapWriter<&'a mut dyn Write>,
    style: Style,
    /// By number of the flow: its port, and the latest timestamps from its sender and its receiver.
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
    /// A capture of a simulation of `trace`, to `out`.
    ///
    /// # Errors
    /// When the scenario has several switches or packets that are none of TCP over Ethernet, or a host sends
    /// more flows than it has ports. An `out` that fails is told in the [end](SwitchCapture::finish).
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        out: &'a mut dyn Write,
    ) -> Result<SwitchCapture<'a>, SimError> {
        scenario.validate()?;
        scenario.require_single()?;
        trace.validate(scenario.ports)?;
        check(scenario)?;
        let mut flows: Vec<_> = trace.flows.iter().collect();
        flows.sort_by_key(|flow| flow.start);
        let mut sent = vec![0; scenario.port_count()];
        let ports = flows.into_iter().map(|flow| {
            let place: &mut usize = &mut sent[flow.src as usize];
            *place += 1;
            let port = source_port(*place - 1).ok_or_else(|| {
                SimError::Network(format!(
                    "host {} sends more than {MOST_SENDS} flows, which each need a port in a capture; use a \
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
    /// When the output has failed at any time; what is there then ends with a whole packet or within one.
    pub fn finish(self) -> io::Result<()> {
        self.result?;
        self.pcap.finish()
    }

    fn write(&mut self, now: Time, packet: &Crossing) -> io::Result<()> {
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

/// Packets must be TCP's, and fit into IPv4.
fn check(scenario: &Scenario) -> Result<(), SimError> {
    let problem = if scenario.has_rdma() || scenario.has_lossless() {
        "a capture is of TCP over Ethernet; this scenario has RDMA or lossless packets".to_owned()
    } else if scenario.mss > MOST_PAYLOAD {
        format!(
            "mss = {}: a packet of IPv4 has room for {MOST_PAYLOAD} bytes; a capture needs at most that",
            scenario.mss
        )
    } else {
        return Ok(());
    };
    Err(SimError::Network(problem))
}

/// A clock of 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "it wraps")]
fn milliseconds(time: Time) -> u32 {
    (time.as_ns() / 1_000_000) as u32
}

impl SwitchObserver for SwitchCapture<'_> {}

impl HostObserver for SwitchCapture<'_> {}

impl Observer for SwitchCapture<'_> {
    fn crossing(&mut self, _at: SwitchId, now: Time, packet: impl Fn() -> Option<Crossing>) {
        if self.result.is_ok()
            && let Some(packet) = packet()
        {
            self.result = self.write(now, &packet);
        }
    }
}
