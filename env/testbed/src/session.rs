//! A run: the hosts are started and connected to the switch, the flows are played, everything ends.

mod processes;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use bufgym_env::control::{ControlOptions, Controller, ExternalControl, LowLevelPolicy};
use bufgym_sim::capture::{PcapWriter, hardware_address};
use bufgym_sim::network::{
    BaseTime, ExternalSwitch, FlowRecord, HostCounts, Outcome, SimError, measured_flow,
};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::ControlledThreshold;
use bufgym_sim::switch::{Policy, PolicySpec};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};

use crate::forward::{Control, Forwarder, Measured};
use crate::machine::{self, monotonic_ns};
use crate::message::{FromHost, HostCounters, ToHost};
use crate::plan::Plan;
use crate::raw::{self, PacketSocket};
use crate::truth::{Lost, PortPacing, Quantiles, Truth};
use crate::{TestbedError, commands};
use processes::{Hosts, unexpected};

/// Size of a packet socket's buffer, if the machine allows it, bytes.
const SOCKET_BYTES: i32 = 16 << 20;
/// Time from the order to start to time zero of the flows.
const LEAD_NS: u64 = 50_000_000;
/// Time after the last flow by which no packet may be in flight any more.
const QUIET_NS: u64 = 200_000_000;
/// Connections that each host opens to measure the round trip.
const PROBES: u32 = 10;
/// Longest time for these connections.
const PROBE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Policy that decides at the switch.
pub enum Decider<'a> {
    /// A rule.
    Rule(&'a PolicySpec),
    /// A learned policy: makes a controller for a run, over a heuristic.
    Learned(&'a (dyn Fn() -> Box<dyn Controller> + Sync), LowLevelPolicy),
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command line of a process that calls [`serve_host`](crate::serve_host).
    pub host_command: Vec<OsString>,
    /// Congestion control of the kernel; by default the one that the transport of the scenario names.
    pub congestion: Option<String>,
    /// Interval of the timeline, if one is to be recorded.
    pub timeline: Option<Duration>,
    /// File for a capture of the packets that arrive at the switch.
    pub capture: Option<PathBuf>,
    /// Time after which the run fails.
    pub limit: std::time::Duration,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Results in the form of a simulation. Flows start when their connections were opened.
    pub outcome: Outcome,
    /// Measurement quality of the run.
    pub truth: Truth,
}

/// Checks that flows can be played, as [`run`] does before it sets anything up.
///
/// # Errors
/// When the scenario or the trace needs features that the testbed lacks, or the kernel lacks the
/// congestion control.
pub fn check(
    scenario: &Scenario,
    trace: &Trace,
    congestion: Option<&str>,
) -> Result<(), TestbedError> {
    Plan::new(scenario, trace, congestion, &[]).map(drop)
}

/// Plays a trace. It takes as long as the trace, plus about a second.
///
/// # Errors
/// Bad input that cannot be played on this machine, and missing programs or privileges. When a host
/// fails, the limit is reached, or `stop` is set, which is checked all the time.
///
/// # Panics
/// When a controller panics.
pub fn run(
    scenario: &Scenario,
    trace: &Trace,
    decider: &Decider<'_>,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Run, TestbedError> {
    // The namespace, the processor and the precedence of the switch are those of this thread.
    std::thread::scope(|scope| {
        let switch = scope.spawn(|| play(scenario, trace, decider, settings, stop));
        match switch.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn play(
    scenario: &Scenario,
    trace: &Trace,
    decider: &Decider<'_>,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Run, TestbedError> {
    let session = Session::open(scenario, trace, settings, stop)?;
    match decider {
        Decider::Rule(spec) => {
            let policy = spec
                .build(scenario)
                .map_err(bufgym_sim::network::SimError::from)?;
            let capacity = spec.capacity(scenario);
            let switch = ExternalSwitch::new(scenario, trace.seed, capacity, policy, spec.aqm())?;
            session.play(switch, &mut ())
        }
        Decider::Learned(controller, low_level) => {
            let options = ControlOptions {
                low_level: low_level.clone(),
                ..ControlOptions::default()
            };
            let (switch, control) = ExternalControl::new(scenario, trace, &options)?;
            let mut learned = Learned {
                control,
                controller: controller(),
                times_us: Vec::new(),
            };
            let mut run = session.play(switch, &mut learned)?;
            run.outcome.summary.decisions = learned.control.decisions();
            run.outcome.trigger_intervals_ps = learned.control.intervals_ps().to_vec();
            run.truth.decision_us = Quantiles::of(learned.times_us);
            Ok(run)
        }
    }
}

/// A learned policy at the switch.
struct Learned {
    control: ExternalControl,
    controller: Box<dyn Controller>,
    times_us: Vec<f64>,
}

impl Control<ControlledThreshold> for Learned {
    fn after_event(
        &mut self,
        switch: &mut ExternalSwitch<ControlledThreshold>,
        now: Instant,
    ) -> Result<(), SimError> {
        if self.control.is_due(switch, now) {
            let began = monotonic_ns();
            self.control.decide(switch, now, self.controller.as_mut())?;
            self.times_us.push((monotonic_ns() - began) as f64 * 1e-3);
        }
        Ok(())
    }
}

/// Times at which flows began and ended, nanoseconds of the monotonic clock, by number.
struct Times {
    started: Vec<Option<u64>>,
    finished: Vec<Option<u64>>,
    unfinished: usize,
}

/// Hosts that listen, and the sockets of the switch.
struct Session<'a> {
    scenario: &'a Scenario,
    trace: &'a Trace,
    settings: &'a Settings,
    stop: &'a AtomicBool,
    plan: Plan,
    hosts: Hosts,
    sockets: Vec<PacketSocket>,
    processors: usize,
    precedence: bool,
    load_average: Option<f64>,
    backlog_drops: u64,
}

/// Returns the name of the switch's interface to a host.
fn port_name(host: usize) -> String {
    format!("port{host}")
}

impl<'a> Session<'a> {
    /// Starts the hosts and connects them to the switch, which is this thread from now on.
    fn open(
        scenario: &'a Scenario,
        trace: &'a Trace,
        settings: &'a Settings,
        stop: &'a AtomicBool,
    ) -> Result<Session<'a>, TestbedError> {
        let load_average = machine::load_average();
        let system = TestbedError::system;
        let mut own = machine::processors().map_err(system("processors of this thread"))?;
        let processors = own.len();
        // The switch has the last processor to itself, the hosts share the others.
        let for_switch: Vec<usize> = own.pop().into_iter().collect();
        if own.is_empty() {
            own.clone_from(&for_switch);
        }
        let plan = Plan::new(scenario, trace, settings.congestion.as_deref(), &own)?;
        commands::check()?;
        raw::unshare_network().map_err(|error| {
            TestbedError::Input(format!(
                "no network namespace of one's own ({error}): run it as root, or as `unshare \
                 --user --map-root-user --net bufgym testbed ...`"
            ))
        })?;
        let precedence = machine::settle(&for_switch, machine::SWITCH_PRIORITY) && processors > 1;
        let mut hosts = Hosts::start(&settings.host_command, plan.hosts.len(), &own)?;
        tie(&hosts)?;
        let sockets = sockets(plan.hosts.len())?;
        for host in &plan.hosts {
            let order = ToHost::Configure(Box::new(host.clone()));
            hosts.tell(host.host as usize, &order)?;
        }
        for host in 0..plan.hosts.len() {
            hosts.expect(host, |message| *message == FromHost::Listening)?;
        }
        Ok(Session {
            scenario,
            trace,
            settings,
            stop,
            plan,
            hosts,
            sockets,
            processors,
            precedence,
            load_average,
            backlog_drops: machine::backlog_drops().map_err(system("/proc/net/softnet_stat"))?,
        })
    }

    /// Plays the flows through `switch`.
    fn play<P: Policy, C: Control<P>>(
        mut self,
        switch: ExternalSwitch<P>,
        control: &mut C,
    ) -> Result<Run, TestbedError> {
        let rtt_us = self.probe()?;
        let mut switch = switch;
        if let Some(interval) = self.settings.timeline {
            switch.record_timeline(interval);
        }
        let capture = self.settings.capture.as_ref().map(|path| {
            let file = File::create(path).and_then(|file| PcapWriter::new(BufWriter::new(file)));
            file.map_err(TestbedError::system(format!("capture {}", path.display())))
        });
        let zero_ns = monotonic_ns() + LEAD_NS;
        let plan = self.plan.clone();
        let sockets = std::mem::take(&mut self.sockets);
        let mut forwarder = Forwarder::new(
            switch,
            self.scenario,
            &plan,
            &sockets,
            zero_ns,
            capture.transpose()?,
        );
        for host in 0..plan.hosts.len() {
            self.hosts.tell(host, &ToHost::Start { zero_ns })?;
        }
        let mut times = Times {
            started: vec![None; plan.flows.len()],
            finished: vec![None; plan.flows.len()],
            unfinished: plan.flows.len(),
        };
        let mut quiet_from = None;
        forwarder.run(control, || {
            self.listen(&mut times)?;
            let now = monotonic_ns();
            if times.unfinished > 0 {
                return self.check_limit(now.saturating_sub(zero_ns), &times);
            }
            let from = *quiet_from.get_or_insert(now);
            Ok(now - from > QUIET_NS)
        })?;
        // The interfaces of the switch disappear with the hosts.
        let mut lost = self.lost(&sockets, &forwarder.measured)?;
        let counters = self.count()?;
        lost.hosts = counters.iter().map(|host| host.lost).sum();
        let truth = self.truth(&forwarder, &times, zero_ns, lost, rtt_us, &counters);
        let records = self.records(&times, zero_ns);
        let sum = |of: fn(&HostCounters) -> u64| counters.iter().map(of).sum();
        let counts = HostCounts {
            timeouts: sum(|host| host.timeouts),
            tail_probes: sum(|host| host.tail_probes),
            spurious_retransmissions: sum(|host| host.duplicates),
        };
        let wall_s = forwarder.measured.run_ns as f64 * 1e-9;
        let outcome = forwarder.switch.outcome(records, counts, wall_s);
        Ok(Run { outcome, truth })
    }

    /// Measures the round trip of a handshake through the idle switch and returns the shortest,
    /// microseconds.
    fn probe(&mut self) -> Result<f64, TestbedError> {
        let hosts = self.plan.hosts.len();
        if hosts < 2 {
            return Ok(f64::NAN);
        }
        let spec = PolicySpec::named("cs");
        let policy = spec
            .build(self.scenario)
            .map_err(bufgym_sim::network::SimError::from)?;
        let capacity = spec.capacity(self.scenario);
        let switch = ExternalSwitch::new(self.scenario, 0, capacity, policy, None)?;
        let plan = self.plan.clone();
        let sockets = std::mem::take(&mut self.sockets);
        let began = monotonic_ns();
        let mut forwarder = Forwarder::new(switch, self.scenario, &plan, &sockets, began, None);
        let mut shortest = u64::MAX;
        let mut asked = 0;
        let mut answered = 0;
        let mut quiet_from = None;
        forwarder.run(&mut (), || -> Result<bool, TestbedError> {
            if asked == answered && asked < hosts {
                let to = u32::try_from((asked + 1) % hosts).unwrap_or(0);
                let connections = PROBES;
                self.hosts.tell(asked, &ToHost::Probe { to, connections })?;
                asked += 1;
            }
            while let Some((host, message)) = self.hosts.poll()? {
                let FromHost::Probed(times) = message else {
                    return Err(unexpected(host, message));
                };
                shortest = times.into_iter().fold(shortest, u64::min);
                answered += 1;
            }
            self.check_stop()?;
            let now = monotonic_ns();
            if u128::from(now - began) > PROBE_LIMIT.as_nanos() {
                return Err(TestbedError::Host {
                    host: asked - 1,
                    problem: "no connection to its neighbour through the idle switch".to_owned(),
                });
            }
            if answered < hosts {
                return Ok(false);
            }
            let from = *quiet_from.get_or_insert(now);
            Ok(now - from > QUIET_NS)
        })?;
        self.sockets = sockets;
        Ok(shortest as f64 * 1e-3)
    }

    fn check_stop(&self) -> Result<(), TestbedError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(TestbedError::Stopped),
            false => Ok(()),
        }
    }

    fn check_limit(&self, elapsed_ns: u64, times: &Times) -> Result<bool, TestbedError> {
        self.check_stop()?;
        if u128::from(elapsed_ns) < self.settings.limit.as_nanos() {
            return Ok(false);
        }
        Err(TestbedError::Timeout {
            unfinished: times.unfinished,
            flows: times.finished.len(),
            limit_s: self.settings.limit.as_secs(),
        })
    }

    /// Handles the messages of hosts about flows.
    fn listen(&mut self, times: &mut Times) -> Result<(), TestbedError> {
        while let Some((host, message)) = self.hosts.poll()? {
            match message {
                FromHost::Started { flow, at_ns } => {
                    if let Some(started) = times.started.get_mut(flow as usize) {
                        *started = Some(at_ns);
                    }
                }
                FromHost::Finished { flow, at_ns } => {
                    if let Some(finished) = times.finished.get_mut(flow as usize) {
                        times.unfinished -= usize::from(finished.is_none());
                        *finished = Some(at_ns);
                    }
                }
                other => return Err(unexpected(host, other)),
            }
        }
        Ok(())
    }

    /// Ends the hosts and returns what their kernels have counted.
    fn count(&mut self) -> Result<Vec<HostCounters>, TestbedError> {
        let hosts = 0..self.plan.hosts.len();
        hosts
            .map(|host| {
                self.hosts.tell(host, &ToHost::Stop)?;
                let counted = |message: &FromHost| matches!(message, FromHost::Counted(_));
                match self.hosts.expect(host, counted)? {
                    FromHost::Counted(counters) => Ok(counters),
                    other => Err(unexpected(host, other)),
                }
            })
            .collect()
    }

    /// Returns the packets that were lost around the switch, except for those that hosts lost.
    fn lost(&self, sockets: &[PacketSocket], measured: &Measured) -> Result<Lost, TestbedError> {
        let mut lost = Lost {
            unsent: measured.unsent,
            ..Lost::default()
        };
        for (host, socket) in sockets.iter().enumerate() {
            let dropped = socket.take_drops();
            lost.sockets += dropped.map_err(TestbedError::system("statistics of a socket"))?;
            let name = port_name(host);
            let dropped = machine::interface_drops(&name);
            lost.interfaces += dropped.map_err(TestbedError::system(name))?;
        }
        let backlog = machine::backlog_drops();
        let backlog = backlog.map_err(TestbedError::system("/proc/net/softnet_stat"))?;
        lost.backlog = backlog - self.backlog_drops;
        Ok(lost)
    }

    fn truth<P: Policy>(
        &self,
        forwarder: &Forwarder<'_, P>,
        times: &Times,
        zero_ns: u64,
        lost: Lost,
        rtt_us: f64,
        counters: &[HostCounters],
    ) -> Truth {
        let measured = &forwarder.measured;
        let us = |late: &Vec<u32>| {
            late.iter()
                .map(|&ns| f64::from(ns) * 1e-3)
                .collect::<Vec<_>>()
        };
        let packet =
            self.scenario.full_packet_bytes() + u64::from(self.scenario.packets.overhead_bytes);
        let packet_us = self.scenario.rate().transmission_time(packet).as_secs_f64() * 1e6;
        let late_us = Quantiles::of(measured.late_ns.iter().flat_map(us).collect());
        let starts = self.plan.flows.iter().zip(&times.started);
        let start_late = starts.filter_map(|(flow, started)| {
            let late = started
                .as_ref()?
                .saturating_sub(zero_ns + flow.start.as_ns());
            Some(late as f64 * 1e-3)
        });
        let run_ns = measured.run_ns as f64;
        Truth {
            void: None,
            packet_us,
            late_us,
            late_share: late_us.times(1.0 / packet_us),
            ports: measured
                .late_ns
                .iter()
                .enumerate()
                .map(|(port, late)| PortPacing {
                    port,
                    packets: late.len(),
                    late_us: Quantiles::of(us(late)),
                })
                .collect(),
            cpu_headroom: 1.0 - measured.busy_ns as f64 / run_ns,
            longest_stall_us: measured.longest_stall_ns as f64 * 1e-3,
            stalled_share: measured.stalled_ns as f64 / run_ns,
            overtaken: measured.overtaken,
            overtaken_most_us: measured.overtaken_most_ns as f64 * 1e-3,
            lost,
            foreign: measured.foreign,
            clock_step_ns: machine::clock_step_ns(),
            start_late_us: Quantiles::of(start_late.collect()),
            rtt_us,
            rtt_ideal_us: ideal_rtt_us(self.scenario),
            retransmitted: counters.iter().map(|host| host.retransmitted).sum(),
            decision_us: Quantiles::default(),
            processors: self.processors,
            precedence: self.precedence,
            steered: counters.iter().all(|host| host.steered),
            load_average: self.load_average,
            came_bytes: measured.came_bytes,
            sent_bytes: measured.sent_bytes + measured.unsent_bytes,
            dropped_bytes: measured.dropped_bytes,
            held_bytes: forwarder.held_bytes(),
        }
        .judged()
    }

    /// Returns the flows in the order of the trace, with the measured times.
    fn records(&self, times: &Times, zero_ns: u64) -> Vec<FlowRecord> {
        let base = BaseTime::new(self.scenario);
        let time = |ns: u64| Instant::from_ns(ns.saturating_sub(zero_ns));
        let mut records: Vec<Option<FlowRecord>> = vec![None; self.trace.flows.len()];
        for (number, &place) in self.plan.places.iter().enumerate() {
            let mut spec = self.plan.flows[number];
            spec.start = times.started[number].map_or(spec.start, time);
            let finish = times.finished[number].map(time);
            let finish = finish.map(|finish| finish.max(spec.start));
            records[place] = Some(measured_flow(&base, spec, finish));
        }
        records.into_iter().flatten().collect()
    }
}

/// Returns the time of a SYN and its answer through the idle network.
fn ideal_rtt_us(scenario: &Scenario) -> f64 {
    let bytes = u64::from(scenario.packets.syn_bytes) + u64::from(scenario.packets.overhead_bytes);
    let options = if scenario.tcp.timestamps { 12 } else { 0 };
    let line = scenario.rate().transmission_time(bytes + options) + scenario.propagation();
    4.0 * line.as_secs_f64() * 1e6
}

/// Makes a pair of interfaces for every host: one end in the namespace of the switch, one in its own.
fn tie(hosts: &Hosts) -> Result<(), TestbedError> {
    let mut lines = String::new();
    for (host, pid) in hosts.pids().enumerate() {
        let port = port_name(host);
        let hardware =
            crate::commands::hardware(hardware_address(u32::try_from(host).unwrap_or(0)));
        let interface = crate::INTERFACE;
        lines += &format!(
            "link add {port} type veth peer name {interface} address {hardware} netns {pid}\n\
             link set {port} arp off up\n"
        );
    }
    let ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6";
    if std::path::Path::new(ipv6).exists() {
        std::fs::write(ipv6, "1").map_err(TestbedError::system(ipv6))?;
    }
    commands::ip(&lines)
}

/// Opens a packet socket on every port.
fn sockets(ports: usize) -> Result<Vec<PacketSocket>, TestbedError> {
    let open = |host: usize| -> io::Result<PacketSocket> {
        let name = port_name(host);
        raw::disable_offloads(&name)?;
        let any = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?;
        let interface = rustix::net::netdevice::name_to_index(any, &name)?;
        PacketSocket::open(interface, SOCKET_BYTES)
    };
    (0..ports)
        .map(|host| open(host).map_err(TestbedError::system(format!("port {host}"))))
        .collect()
}

impl From<io::Error> for TestbedError {
    fn from(source: io::Error) -> TestbedError {
        TestbedError::System {
            what: "the switch".to_owned(),
            source,
        }
    }
}
