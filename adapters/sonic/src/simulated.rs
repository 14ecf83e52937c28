//! The simulator instead of a switch: it plays a trace, puts its counters into COUNTERS_DB like syncd, and
//! takes profiles from CONFIG_DB like the buffer manager and orchagent.

use std::time::Duration;

use bufgym_sim::network::{Alarm, AlarmKind, Outcome, SimError, Simulator, StopReason, SwitchId};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::Loss;
use bufgym_sim::switch::{PacketView, Policy, Verdict, View};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units;

use crate::counters::{Source, time_stamp};
use crate::schema::{self, Reference, key};
use crate::{Database, Databases, Error};

/// The pool of the queues under control.
pub const POOL: &str = "egress_lossy_pool";
/// The profile of these queues at the beginning, with α = 1.
pub const PROFILE: &str = "q_lossy_profile";
/// The pool and the profile of queues that the agent does not control.
const LOSSLESS: [&str; 2] = ["egress_lossless_pool", "egress_lossless_profile"];

/// Queues of a port: one carries everything, two are for lossless packets.
const QUEUES: [u8; 3] = [0, 3, 4];

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u64,
    sent_packets: u64,
    dropped: u64,
    dropped_packets: u64,
    watermark: u64,
}

/// Dynamic Threshold with a `dynamic_th` per port, and the counters of a switch.
#[derive(Clone, Debug)]
struct Metered {
    thresholds: Vec<i8>,
    counters: Vec<Counters>,
}

impl Metered {
    /// Admits if `q < 2^th · (B - Q)`, without rounding.
    fn admits(&self, view: View<'_>, queue: usize) -> bool {
        let (length, free) = (view.buffer.queue(queue), view.buffer.free());
        match self.thresholds[queue] {
            th if th >= 0 => length < free << th,
            th => (length << -th) < free,
        }
    }
}

impl Policy for Metered {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        match self.admits(view, packet.queue) {
            true => Verdict::Accept,
            false => Verdict::Drop,
        }
    }

    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        let counters = &mut self.counters[packet.queue];
        counters.watermark = counters.watermark.max(view.buffer.queue(packet.queue));
    }

    fn on_departure(&mut self, _view: View<'_>, packet: PacketView) {
        let counters = &mut self.counters[packet.queue];
        counters.sent += packet.bytes;
        counters.sent_packets += 1;
    }

    fn on_drop(&mut self, _view: View<'_>, packet: PacketView, _loss: Loss) {
        let counters = &mut self.counters[packet.queue];
        counters.dropped += packet.bytes;
        counters.dropped_packets += 1;
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let free = view.buffer.free();
        Some(match self.thresholds[queue] {
            th if th >= 0 => free << th,
            th => free >> -th,
        })
    }
}

/// A switch with one queue per port, behind SONiC's databases.
pub struct SimulatedSwitch {
    scenario: Scenario,
    simulator: Simulator<Metered>,
    /// True if the switch reports the bytes that wait now, like some switches do; false if it reports
    /// watermarks only.
    tells_occupancy: bool,
}

impl SimulatedSwitch {
    /// Builds a switch at the beginning of a trace.
    ///
    /// # Errors
    /// Fails if the scenario is inconsistent or the trace does not fit it.
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        tells_occupancy: bool,
    ) -> Result<SimulatedSwitch, SimError> {
        let ports = scenario.port_count();
        let policy = Metered {
            thresholds: vec![0; ports],
            counters: vec![Counters::default(); ports],
        };
        Ok(SimulatedSwitch {
            simulator: Simulator::new(scenario, trace, policy)?,
            scenario: scenario.clone(),
            tells_occupancy,
        })
    }

    /// Returns the name of a port.
    pub fn port(port: usize) -> String {
        format!("Ethernet{}", 4 * port)
    }

    fn ports(&self) -> usize {
        self.scenario.port_count()
    }

    fn oid(port: usize, queue: Option<u8>) -> String {
        match queue {
            None => format!("oid:0x1000000{port:06x}"),
            Some(queue) => format!("oid:0x15000000{port:04x}{queue:02x}"),
        }
    }

    /// Writes the configuration, maps and counters of a switch that has just started.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn populate(&mut self, databases: &mut Databases) -> Result<(), Error> {
        let size = self.scenario.network.buffer_bytes.to_string();
        let speed = (self.scenario.network.rate_bps / 1_000_000).to_string();
        let mut config = redis::pipe();
        let mut set = |table: &str, name: &str, fields: &[(&str, &str)]| {
            let command = config.cmd("HSET").arg(key(table, name));
            for (field, value) in fields {
                command.arg(field).arg(value);
            }
        };
        let pool = [("type", "egress"), ("mode", "dynamic"), ("size", &size)];
        set(schema::BUFFER_POOL, POOL, &pool);
        let profile = [("pool", POOL), ("size", "0"), ("dynamic_th", "0")];
        set(schema::BUFFER_PROFILE, PROFILE, &profile);
        let [pool, profile] = LOSSLESS;
        set(
            schema::BUFFER_POOL,
            pool,
            &[("type", "egress"), ("mode", "static"), ("size", &size)],
        );
        set(
            schema::BUFFER_PROFILE,
            profile,
            &[("pool", pool), ("size", "0"), ("static_th", &size)],
        );
        for port in 0..self.ports() {
            let name = SimulatedSwitch::port(port);
            set(
                schema::PORT,
                &name,
                &[("speed", &speed), ("admin_status", "up")],
            );
            set(
                schema::BUFFER_QUEUE,
                &format!("{name}|0"),
                &[("profile", PROFILE)],
            );
            set(
                schema::BUFFER_QUEUE,
                &format!("{name}|3-4"),
                &[("profile", LOSSLESS[1])],
            );
        }
        let _: redis::Value = databases.send(Database::Config, "cannot write", &config)?;

        let mut maps = redis::pipe();
        for port in 0..self.ports() {
            let name = SimulatedSwitch::port(port);
            maps.cmd("HSET")
                .arg(schema::PORT_MAP)
                .arg(&name)
                .arg(SimulatedSwitch::oid(port, None));
            for queue in QUEUES {
                let oid = SimulatedSwitch::oid(port, Some(queue));
                maps.cmd("HSET")
                    .arg(schema::QUEUE_MAP)
                    .arg(format!("{name}:{queue}"))
                    .arg(oid);
            }
        }
        let _: redis::Value = databases.send(Database::Counters, "cannot write", &maps)?;
        self.publish(databases)
    }

    /// Puts counters into COUNTERS_DB and clears watermarks, like syncd does at every interval.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn publish(&mut self, databases: &mut Databases) -> Result<(), Error> {
        let now = self.now().as_nanos();
        let mut pipeline = redis::pipe();
        for port in 0..self.ports() {
            let waiting = self.simulator.buffer().port(port);
            let counters = &mut self.simulator.policy_mut().counters[port];
            let c = *counters;
            counters.watermark = waiting;
            let queue = schema::counters(&SimulatedSwitch::oid(port, Some(0)));
            let command = pipeline.cmd("HSET").arg(queue);
            command.arg("SAI_QUEUE_STAT_BYTES").arg(c.sent);
            command.arg("SAI_QUEUE_STAT_PACKETS").arg(c.sent_packets);
            command.arg("SAI_QUEUE_STAT_DROPPED_BYTES").arg(c.dropped);
            command
                .arg("SAI_QUEUE_STAT_DROPPED_PACKETS")
                .arg(c.dropped_packets);
            command
                .arg("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES")
                .arg(c.watermark);
            if self.tells_occupancy {
                command
                    .arg("SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES")
                    .arg(waiting);
            }
            let command = pipeline
                .cmd("HSET")
                .arg(schema::counters(&SimulatedSwitch::oid(port, None)));
            command.arg("SAI_PORT_STAT_IF_OUT_OCTETS").arg(c.sent);
            command
                .arg("SAI_PORT_STAT_IF_OUT_UCAST_PKTS")
                .arg(c.sent_packets);
            command.arg("SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS").arg(0);
            command
                .arg("SAI_PORT_STAT_IF_OUT_DISCARDS")
                .arg(c.dropped_packets);
        }
        for source in [Source::Queue, Source::Port] {
            let stamp = now.to_string();
            pipeline
                .cmd("HSET")
                .arg(schema::TIME_STAMPS)
                .arg(time_stamp(source))
                .arg(stamp);
        }
        let _: redis::Value =
            databases.send(Database::Counters, "cannot write counters", &pipeline)?;
        Ok(())
    }

    /// Takes the profiles of the queues from CONFIG_DB. A queue whose profile does not exist keeps its
    /// threshold.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn apply(&mut self, databases: &mut Databases) -> Result<(), Error> {
        for port in 0..self.ports() {
            let queue = key(
                schema::BUFFER_QUEUE,
                &format!("{}|0", SimulatedSwitch::port(port)),
            );
            let profile = databases.field(Database::Config, &queue, schema::PROFILE)?;
            let Some(profile) = profile else { continue };
            let profile = key(schema::BUFFER_PROFILE, &Reference::parse(&profile).name);
            let threshold = databases.field(Database::Config, &profile, schema::DYNAMIC_TH)?;
            if let Some(threshold) = threshold.and_then(|threshold| threshold.parse().ok()) {
                self.simulator.policy_mut().thresholds[port] = threshold;
            }
        }
        Ok(())
    }

    /// Runs for `interval` of simulated time; returns `false` if the trace has already ended.
    pub fn play(&mut self, interval: units::Duration) -> bool {
        let alarm = Alarm {
            switch: SwitchId::default(),
            kind: AlarmKind::Interval,
            number: 0,
        };
        self.simulator.set_alarm(interval, alarm);
        matches!(self.simulator.advance(), StopReason::Alarm(_))
    }

    /// Returns the `dynamic_th` in force, by port.
    pub fn thresholds(&self) -> &[i8] {
        &self.simulator.policy().thresholds
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.simulator.now().as_ns())
    }

    /// Returns the flow records and aggregates so far.
    pub fn outcome(&mut self) -> Outcome {
        self.simulator.outcome()
    }
}
