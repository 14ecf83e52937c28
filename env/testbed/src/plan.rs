//! Assignment of flows to hosts: senders, receivers and addresses.

use bufgym_sim::capture::{FIRST_PORT, MAX_SENDS, source_port};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::{Scenario, TransportKind};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_util::input::excerpt;

use crate::TestbedError;
use crate::message::{HostPlan, Receiving, Sending, Stack};

/// Largest number of hosts.
const MAX_HOSTS: u32 = 64;
/// Supported rates, bit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000;
/// Size of the largest IP packet of Ethernet without jumbo frames.
const ETHERNET_MTU: u32 = 1_500;
/// Bytes of the headers of IPv4 and TCP without options, and of timestamps.
const TCP_IP: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// Linux's own largest receive buffer (`tcp_rmem`).
const RECEIVE_BUFFER: u64 = 6 << 20;
/// The kernel counts timeouts in ticks of 1 to 10 ms.
const SMALLEST_RTO_US: u64 = 5_000;

/// The flows of a trace among hosts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The flows in the order of their starts; a flow's number is its place.
    pub(crate) flows: Vec<FlowSpec>,
    /// The flows' places in the trace, by number.
    pub(crate) places: Vec<usize>,
    /// The numbers of the flows that each host sends, by port.
    pub(crate) by_port: Vec<Vec<u32>>,
    pub(crate) hosts: Vec<HostPlan>,
}

impl Plan {
    /// Makes the plan for a trace.
    ///
    /// # Errors
    /// Bad input that real hosts on this machine cannot play.
    pub(crate) fn new(
        scenario: &Scenario,
        trace: &Trace,
        congestion: Option<&str>,
        host_processors: &[usize],
    ) -> Result<Plan, TestbedError> {
        scenario.validate().map_err(SimError::from)?;
        scenario.require_single().map_err(SimError::from)?;
        trace
            .validate(scenario.network.ports)
            .map_err(SimError::from)?;
        let stack = stack(scenario, congestion)?;
        check(scenario, trace)?;
        let mut places: Vec<usize> = (0..trace.flows.len()).collect();
        places.sort_by_key(|&place| trace.flows[place].start);
        let flows: Vec<FlowSpec> = places.iter().map(|&place| trace.flows[place]).collect();
        let mut by_port = vec![Vec::new(); scenario.port_count()];
        let plan = |host| HostPlan {
            host,
            hosts: scenario.network.ports,
            processors: host_processors.to_vec(),
            stack: stack.clone(),
            sends: Vec::new(),
            receives: Vec::new(),
        };
        let mut hosts: Vec<HostPlan> = (0..scenario.network.ports).map(plan).collect();
        for (number, flow) in (0_u32..).zip(&flows) {
            let [from, to] = [flow.src, flow.dst].map(|host| host as usize);
            let ports: &mut Vec<u32> = &mut by_port[from];
            let Some(port) = source_port(ports.len()) else {
                return Err(TestbedError::Input(format!(
                    "host {from} sends more than {MAX_SENDS} flows, which each need a port; use a \
                     shorter trace"
                )));
            };
            ports.push(number);
            hosts[from].sends.push(Sending {
                flow: number,
                start_ns: flow.start.as_ns(),
                to: flow.dst,
                port,
                bytes: flow.size,
            });
            hosts[to].receives.push(Receiving {
                flow: number,
                from: flow.src,
                port,
                bytes: flow.size,
            });
        }
        Ok(Plan {
            flows,
            places,
            by_port,
            hosts,
        })
    }

    /// Returns the flow that a host sends from a port.
    pub(crate) fn flow_from(&self, host: usize, port: u16) -> Option<u32> {
        let place = port.checked_sub(FIRST_PORT)?;
        self.by_port[host].get(usize::from(place)).copied()
    }
}

fn check(scenario: &Scenario, trace: &Trace) -> Result<(), TestbedError> {
    let problem = if trace.flows.is_empty() {
        "the trace has no flows; needs at least one".to_owned()
    } else if scenario.network.ports > MAX_HOSTS {
        format!(
            "ports = {}: a host each; must be at most {MAX_HOSTS}",
            scenario.network.ports
        )
    } else if !RATES.contains(&scenario.network.rate_bps) {
        format!(
            "rate_bps = {}: a program on one processor serves 1000000 to 1000000000; try \
             --set rate_bps=100000000",
            scenario.network.rate_bps
        )
    } else if scenario.tcp.min_rto_us < SMALLEST_RTO_US {
        format!(
            "min_rto_us = {}: the kernel counts timeouts in ticks of milliseconds; must be at least \
             {SMALLEST_RTO_US}",
            scenario.tcp.min_rto_us
        )
    } else if scenario.control.decision_latency_us > 0 {
        format!(
            "decision_latency_us = {}: decisions take the time that they take; must be 0",
            scenario.control.decision_latency_us
        )
    } else if let Some(flow) = trace.flows.iter().find(|flow| flow.src == flow.dst) {
        format!(
            "flow {}: host {} sends to itself; src and dst must differ",
            flow.id, flow.src
        )
    } else {
        return Ok(());
    };
    Err(TestbedError::Input(problem))
}

/// Returns the kernel's settings for a scenario.
fn stack(scenario: &Scenario, congestion: Option<&str>) -> Result<Stack, TestbedError> {
    let options = if scenario.tcp.timestamps {
        TIMESTAMPS
    } else {
        0
    };
    let mtu = scenario.packets.mss + TCP_IP + options;
    if mtu > ETHERNET_MTU || scenario.packets.mss < 536 {
        return Err(TestbedError::Input(format!(
            "mss = {}: {} with timestamps = {}; must be 536 to {}",
            scenario.packets.mss,
            "segments have to fit into packets of 1500 bytes",
            scenario.tcp.timestamps,
            ETHERNET_MTU - TCP_IP - options
        )));
    }
    let name = match (congestion, scenario.transport.kind) {
        (Some(name), _) => name,
        (None, TransportKind::NewReno) => "reno",
        (None, TransportKind::Cubic | TransportKind::Linux) => "cubic",
        (None, TransportKind::Dctcp | TransportKind::LinuxDctcp) => "dctcp",
        (None, other) => {
            return Err(TestbedError::Input(format!(
                "transport = {}: the kernel has no such congestion control; must be newreno, cubic, \
                 linux, dctcp or linux-dctcp, or choose one with --congestion",
                other.name()
            )));
        }
    };
    // If the list cannot be read, the kernel refuses unknown names.
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if let Ok(known) = known
        && !known.split_whitespace().any(|known| known == name)
    {
        return Err(TestbedError::Input(format!(
            "congestion control {}: this kernel has {}; choose one with --congestion, or load its \
             module",
            excerpt(name),
            known.trim().replace(' ', ", ")
        )));
    }
    Ok(Stack {
        congestion: name.to_owned(),
        min_rto_ms: scenario.tcp.min_rto_us.div_ceil(1_000),
        init_cwnd: scenario.tcp.init_cwnd,
        mtu,
        timestamps: scenario.tcp.timestamps,
        sack: scenario.tcp.sack,
        ecn: scenario.uses_ecn(),
        receive_buffer: match scenario.tcp.max_cwnd_bytes {
            0 => RECEIVE_BUFFER,
            bytes => bytes,
        },
        rate_bps: scenario.network.rate_bps,
    })
}
