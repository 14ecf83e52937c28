//! Flow traces from packet captures.
//!
//! Every direction of a connection that carries payload becomes a flow. Its source is the sending
//! side, its size the number of delivered bytes, and its start the first packet with payload.

mod container;
mod copies;
mod coverage;
mod flows;
mod headers;
mod segment;
mod tunnel;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{FlowSpec, Trace};
use crate::units::Instant;
use container::Container;
use copies::Copies;
use flows::{Flow, FlowTable, count};
use headers::Headers;

pub use headers::Tunnels;
use segment::Network;

/// Options for reading a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// If a direction of a connection sends nothing new for longer than this, its next payload starts
    /// a new flow (1 s). The default is shorter than the usual pauses between requests on an open
    /// connection. It is longer than two retransmission timeouts of Linux, 200 and 400 ms, so that
    /// a loss does not split a flow.
    pub idle: std::time::Duration,
    /// Number of switch ports; `None` for as many ports as hosts. Hosts are numbered in the order in
    /// which they first appear in a flow, and assigned to the ports in turn.
    pub ports: Option<u32>,
    /// True to take the flows between the ends of tunnels, that is, those of the outermost IP header.
    /// Otherwise the flows within tunnels are taken.
    pub outer: bool,
    /// True to read a capture that ends within a packet up to there. Otherwise such a capture is
    /// refused.
    pub truncated: bool,
}

impl Default for CaptureOptions {
    fn default() -> CaptureOptions {
        CaptureOptions {
            idle: std::time::Duration::from_secs(1),
            ports: None,
            outer: false,
            truncated: false,
        }
    }
}

/// A capture read into a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The flows in order of their start, of kind `tcp` or `udp`. Starts are relative to the
    /// earliest packet of the capture.
    pub trace: Trace,
    /// Packets in the capture.
    pub packets: u64,
    /// The hosts that have a flow, in the order in which they first appear in one. Host `i` is
    /// port `i`, or the remainder of `i` by [`CaptureOptions::ports`].
    pub hosts: Vec<IpAddr>,
    /// Number of ports of the trace.
    pub ports: u32,
    /// Packets that belong to no flow of the trace.
    pub skipped: Skipped,
    /// Packets of flows that have passed tunnels.
    pub tunnels: Tunnels,
    /// UDP packets that had already been captured within the millisecond before, and are not counted
    /// again.
    pub copies: u64,
    /// Blocks of a pcapng file that were skipped, because they hold no packet or are of an unknown
    /// type: the type's name, and the number of blocks.
    pub blocks: BTreeMap<String, u64>,
    /// True if the file ended within a packet, and [`CaptureOptions::truncated`] was given.
    pub cut_short: bool,
}

/// Packets that belong to no flow, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Packets on an interface of a link type that is not read.
    pub link_type: u64,
    /// Packets that are neither IPv4 nor IPv6.
    pub not_ip: u64,
    /// Packets that are neither TCP nor UDP.
    pub not_tcp_or_udp: u64,
    /// Packets cut off before the end of the headers that are needed.
    pub cut_off: u64,
    /// Packets with a header that contradicts itself.
    pub malformed: u64,
    /// Fragments whose first one, which has the port numbers, was not captured before.
    pub fragment: u64,
    /// Packets without a time.
    pub no_time: u64,
    /// Packets without payload: handshakes, acknowledgements.
    pub no_payload: u64,
    /// Packets with payload that was already delivered before a pause.
    pub repeated: u64,
    /// Packets in flows whose two ends are the same port.
    pub same_port: u64,
}

impl Skipped {
    /// Returns the total number of packets.
    pub fn total(&self) -> u64 {
        self.reasons().iter().map(|(count, _)| count).sum()
    }

    fn reasons(&self) -> [(u64, &'static str); 10] {
        [
            (self.link_type, "on interfaces of an unknown link type"),
            (self.not_ip, "not IP"),
            (self.not_tcp_or_udp, "neither TCP nor UDP"),
            (self.cut_off, "cut off within the headers"),
            (self.malformed, "with headers that are wrong"),
            (self.fragment, "fragments without their first"),
            (self.no_time, "without a time"),
            (self.no_payload, "without payload"),
            (self.repeated, "repeated after a pause"),
            (self.same_port, "with both ends at one port"),
        ]
    }
}

impl fmt::Display for Skipped {
    /// Writes the reasons that occurred and their counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.reasons().into_iter().filter(|(count, _)| *count > 0);
        let found: Vec<_> = found
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        f.write_str(&found.join(", "))
    }
}

/// A capture that cannot be used. Each message is one line with the place, the problem and a valid
/// alternative.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("{}: cannot read the capture: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{origin}: not a packet capture: {problem}")]
    NotACapture {
        /// The file.
        origin: String,
        /// The apparent content, and a valid alternative.
        problem: String,
    },
    /// A damaged part of the file.
    #[error("{origin}: byte {offset}, after {packets} packets: {problem}")]
    Damaged {
        /// The file.
        origin: String,
        /// Start of the record that cannot be read, bytes from 0.
        offset: u64,
        /// Packets before it.
        packets: u64,
        /// The problem found there.
        problem: String,
    },
    /// The file ends within a packet or block.
    #[error(
        "{origin}: byte {offset}, after {packets} packets: the file ends within a record, {missing} \
         bytes early; was it copied whole? --truncated takes the {packets} packets before it"
    )]
    CutShort {
        /// The file.
        origin: String,
        /// Start of the record that is not whole, bytes from 0.
        offset: u64,
        /// Packets before it.
        packets: u64,
        /// Number of missing bytes.
        missing: usize,
    },
    /// The capture has no flow.
    #[error("{origin}: no flows: {problem}")]
    Empty {
        /// The file.
        origin: String,
        /// The content found instead.
        problem: String,
    },
    /// A flow that no trace can hold.
    #[error("{origin}: {problem}")]
    Flow {
        /// The file.
        origin: String,
        /// The limit that is exceeded.
        problem: String,
    },
}

impl Capture {
    /// Reads a capture in the format pcap (both byte orders, microseconds or nanoseconds) or
    /// pcapng. The file is read once from front to back. The memory depends on the number of
    /// connections, not on the number of packets.
    ///
    /// Link types: Ethernet with or without VLAN tags, raw IP, Linux cooked (both versions), BSD
    /// loopback. IPv4 may have options and fragments, IPv6 extension headers. The lengths in the IP
    /// headers count, so packets may be cut off. TCP payload counts once, even if it was sent
    /// several times. A SYN, or a pause longer than [`CaptureOptions::idle`], starts a new flow
    /// between the same ports. Bytes that were seen before, such as those of keep-alives, do not end a
    /// pause.
    ///
    /// In tunnels, the innermost flow of a packet counts: VXLAN (port 4789, or 8472 if the inner frame
    /// is unambiguous), GENEVE, GRE, ERSPAN, IP in IP, MPLS and PPPoE, also nested. Tunnels do not
    /// separate flows: a packet that is captured both within a tunnel and outside of it counts once.
    /// With [`CaptureOptions::outer`] the outermost IP header counts.
    ///
    /// A UDP packet counts once however often it was captured within 1 ms. It is recognised by its
    /// addresses, ports, length and IP identification, and by its payload as far as that was captured.
    /// Without an identification (IPv6; 0 in IPv4) the payload decides.
    ///
    /// # Errors
    /// A file that cannot be read, is no capture, is damaged or, unless
    /// [`truncated`](CaptureOptions::truncated) is set, ends within a packet; and one without payload
    /// between two ports.
    ///
    /// # Panics
    /// When `options.ports` is zero.
    pub fn read(path: impl AsRef<Path>, options: &CaptureOptions) -> Result<Capture, CaptureError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| CaptureError::Io {
            path: path.to_owned(),
            source,
        })?;
        let reader = BufReader::with_capacity(1 << 18, file);
        Capture::from_reader(reader, &path.display().to_string(), options)
    }

    /// As [`read`](Capture::read), from any reader; `origin` stands for the file in errors.
    ///
    /// # Errors
    /// As for `read`.
    ///
    /// # Panics
    /// As for `read`.
    pub fn from_reader(
        reader: impl Read,
        origin: &str,
        options: &CaptureOptions,
    ) -> Result<Capture, CaptureError> {
        let mut container = Container::open(reader, origin, options.truncated)?;
        let mut headers = Headers::new(options.outer);
        let (mut seen, mut copies) = (Copies::default(), 0);
        let mut table = FlowTable::new(options.idle);
        let mut skipped = Skipped::default();
        let mut earliest: Option<i128> = None;
        while let Some(packet) = container.next_packet()? {
            let Some(time_ns) = packet.time_ns else {
                skipped.no_time += 1;
                continue;
            };
            earliest = Some(earliest.map_or(time_ns, |earliest| earliest.min(time_ns)));
            match headers.read(&packet) {
                Network::Segment(segment) if seen.is_copy(time_ns, &segment) => copies += 1,
                Network::Segment(segment) => {
                    let belongs = table.add(time_ns, &segment);
                    skipped.no_payload += u64::from(segment.payload == 0);
                    skipped.repeated += u64::from(segment.payload > 0 && !belongs);
                    if table.is_beyond_limit() {
                        return Err(CaptureError::Flow {
                            origin: origin.to_owned(),
                            problem: format!(
                                "more than {} connections or flows, the most that are read: split \
                                 the capture",
                                Trace::MAX_FLOWS
                            ),
                        });
                    }
                }
                Network::LinkType => skipped.link_type += 1,
                Network::NotIp => skipped.not_ip += 1,
                Network::NotTcpOrUdp => skipped.not_tcp_or_udp += 1,
                Network::CutOff => skipped.cut_off += 1,
                Network::Malformed => skipped.malformed += 1,
                Network::Fragment => skipped.fragment += 1,
                Network::RestOfTunnel => {}
            }
        }
        let (packets, blocks) = (container.packets(), container.passed());
        let (flows, hosts) = table.finish();
        let ports = options.ports.unwrap_or_else(|| count(&hosts));
        let finished = Finish {
            origin,
            ports,
            earliest: earliest.unwrap_or(0),
        };
        let flows = finished.flows(flows, &mut skipped)?;
        if flows.is_empty() {
            let problem = if packets == 0 && blocks.is_empty() {
                "the capture has no packets".to_owned()
            } else if packets == 0 {
                format!(
                    "the capture has no packets, only blocks of other types: {}",
                    named(&blocks)
                )
            } else {
                format!(
                    "of {packets} packets {skipped}; a flow needs TCP or UDP payload between two ports"
                )
            };
            let origin = origin.to_owned();
            return Err(CaptureError::Empty { origin, problem });
        }
        Ok(Capture {
            trace: Trace {
                flows,
                kinds: KINDS.map(str::to_owned).to_vec(),
                seed: 0,
            },
            packets,
            hosts,
            ports,
            skipped,
            tunnels: headers.tunnels(),
            copies,
            blocks,
            cut_short: container.is_cut_short(),
        })
    }
}

/// Lists the types of blocks and their counts.
fn named(blocks: &BTreeMap<String, u64>) -> String {
    let blocks = blocks.iter();
    let blocks: Vec<_> = blocks
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    blocks.join(", ")
}

/// Names of the kinds, by [`FlowSpec::kind`].
const KINDS: [&str; 2] = ["tcp", "udp"];

/// Makes a trace of the flows that were found.
struct Finish<'a> {
    origin: &'a str,
    ports: u32,
    earliest: i128,
}

impl Finish<'_> {
    fn flows(
        &self,
        mut found: Vec<Flow>,
        skipped: &mut Skipped,
    ) -> Result<Vec<FlowSpec>, CaptureError> {
        // The sort is stable: flows that start at the same time stay in the order of their packets.
        found.sort_by_key(|flow| flow.start_ns);
        let mut flows = Vec::with_capacity(found.len());
        for flow in found {
            let (src, dst) = (flow.src % self.ports, flow.dst % self.ports);
            if src == dst {
                skipped.same_port += flow.packets;
                continue;
            }
            flows.push(FlowSpec {
                id: flows.len() as u64,
                src,
                dst,
                start: self.start(&flow)?,
                size: self.size(&flow)?,
                kind: u16::from(flow.udp),
                query: -1,
                priority: 0,
            });
        }
        Ok(flows)
    }

    fn start(&self, flow: &Flow) -> Result<Instant, CaptureError> {
        let start = flow.start_ns - self.earliest;
        u64::try_from(start)
            .ok()
            .filter(|start| *start <= Trace::MAX_START_NS)
            .map(Instant::from_ns)
            .ok_or_else(|| {
                self.error(format!(
                    "a flow starts {} s after the earliest packet; at most {} s are possible: \
                     split the capture, or correct its clock",
                    start / 1_000_000_000,
                    Trace::MAX_START_NS / 1_000_000_000
                ))
            })
    }

    fn size(&self, flow: &Flow) -> Result<u64, CaptureError> {
        if flow.size <= Trace::MAX_SIZE {
            return Ok(flow.size);
        }
        Err(self.error(format!(
            "a flow has {} bytes; at most {} are possible: split the capture",
            flow.size,
            Trace::MAX_SIZE
        )))
    }

    fn error(&self, problem: String) -> CaptureError {
        CaptureError::Flow {
            origin: self.origin.to_owned(),
            problem,
        }
    }
}
