use super::{Order, SlottedError, Switch};

/// A packet of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Slot of the packet's arrival, from 0.
    pub slot: u64,
    /// Port that the packet leaves by, from 0.
    pub port: u32,
    /// Cycles of work that the packet needs, at least 1.
    pub work: u32,
    /// Value of the packet's transmission, at least 1.
    pub value: u32,
}

impl Packet {
    /// Returns a packet with work 1 and value 1.
    pub const fn unit(slot: u64, port: u32) -> Packet {
        Packet {
            slot,
            port,
            work: 1,
            value: 1,
        }
    }

    pub(super) const fn with_work(slot: u64, port: u32, work: u32) -> Packet {
        Packet {
            work,
            ..Packet::unit(slot, port)
        }
    }

    pub(super) const fn with_value(slot: u64, port: u32, value: u32) -> Packet {
        Packet {
            value,
            ..Packet::unit(slot, port)
        }
    }
}

/// The property in which the packets of a list differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No difference: work 1, value 1.
    Unit,
    /// The work; all values are 1.
    Work,
    /// The value; all work is 1.
    Value,
}

/// The result that a proof predicts for the arrivals that it constructs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// Name of the theorem.
    pub theorem: &'static str,
    /// Policies that the theorem is about.
    pub policies: &'static [&'static str],
    /// Order that the theorem is about; `None` if the order makes no difference.
    pub order: Option<Order>,
    /// Value that these policies transmit by the end of the last round: the finite-size formula.
    pub algorithm: u64,
    /// Value that the proof's own schedule transmits by then.
    pub optimum: u64,
    /// Ratio that the paper states.
    pub paper: f64,
}

impl Prediction {
    /// Returns the ratio of the finite-size formula.
    pub fn ratio(&self) -> f64 {
        self.optimum as f64 / self.algorithm as f64
    }
}

/// Packets in order of arrival, and properties known from a proof.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arrivals {
    packets: Vec<Packet>,
    rounds_end: Option<u64>,
    script: Option<Vec<bool>>,
    prediction: Option<Prediction>,
}

impl Arrivals {
    /// The latest slot of an arrival.
    pub const MAX_SLOT: u64 = 1 << 50;
    /// The largest work and the largest value.
    pub const MAX_WORK: u32 = 1_000_000;

    /// Creates a list of packets for a switch with `ports` ports.
    ///
    /// # Errors
    /// Slots that decrease, a port out of range, work or value 0 or above
    /// [`MAX_WORK`](Arrivals::MAX_WORK), both work and values. The message counts packets from 1.
    pub fn new(packets: Vec<Packet>, ports: u32) -> Result<Arrivals, SlottedError> {
        let mut check = Check::new(ports);
        for (index, packet) in packets.iter().enumerate() {
            check.packet(packet).map_err(|problem| {
                SlottedError::Input(format!("packet {}: {problem}", index + 1))
            })?;
        }
        Ok(Arrivals {
            packets,
            ..Arrivals::default()
        })
    }

    /// Creates arrivals with rounds, which end before slot `rounds_end`. The schedule of the proof
    /// accepts the packets that `script` marks.
    pub(super) fn constructed(
        packets: Vec<Packet>,
        rounds_end: u64,
        script: Option<Vec<bool>>,
        prediction: Option<Prediction>,
    ) -> Arrivals {
        Arrivals {
            packets,
            rounds_end: Some(rounds_end),
            script,
            prediction,
        }
    }

    /// Returns the packets in order of arrival.
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// Returns the number of slots of all rounds; `None` without rounds.
    pub fn rounds_end(&self) -> Option<u64> {
        self.rounds_end
    }

    /// Returns, for each packet, true if the schedule of the proof accepts it; `None` without a
    /// schedule.
    pub fn script(&self) -> Option<&[bool]> {
        self.script.as_deref()
    }

    /// Returns the prediction of the proof; `None` without a proof.
    pub fn prediction(&self) -> Option<&Prediction> {
        self.prediction.as_ref()
    }

    /// Returns the property in which the packets differ.
    pub fn kind(&self) -> Kind {
        self.packets
            .iter()
            .find_map(|packet| {
                if packet.work > 1 {
                    Some(Kind::Work)
                } else if packet.value > 1 {
                    Some(Kind::Value)
                } else {
                    None
                }
            })
            .unwrap_or(Kind::Unit)
    }

    /// Checks that every packet is for a port of the switch.
    pub(super) fn check_ports(&self, switch: &Switch) -> Result<(), SlottedError> {
        match self.packets.iter().find(|p| p.port >= switch.ports) {
            Some(packet) => Err(SlottedError::Input(format!(
                "port: must be below {} (the switch's ports), found {}",
                switch.ports, packet.port
            ))),
            None => Ok(()),
        }
    }
}

/// Checks packets one by one.
pub(super) struct Check {
    ports: u32,
    last_slot: u64,
    kind: Kind,
}

impl Check {
    pub(super) fn new(ports: u32) -> Check {
        Check {
            ports,
            last_slot: 0,
            kind: Kind::Unit,
        }
    }

    /// Checks the next packet. The error describes the problem.
    pub(super) fn packet(&mut self, packet: &Packet) -> Result<(), String> {
        if packet.slot > Arrivals::MAX_SLOT {
            return Err(format!(
                "slot: must be at most {}, found {}",
                Arrivals::MAX_SLOT,
                packet.slot
            ));
        }
        if packet.slot < self.last_slot {
            return Err(format!(
                "slot: {} after slot {}; packets must be in order of arrival",
                packet.slot, self.last_slot
            ));
        }
        self.last_slot = packet.slot;
        if packet.port >= self.ports {
            return Err(match self.ports.checked_sub(1) {
                Some(last) => format!("port: must be from 0 to {last}, found {}", packet.port),
                None => "port: there is none; a switch has at least one".to_owned(),
            });
        }
        for (field, amount) in [("work", packet.work), ("value", packet.value)] {
            if !(1..=Arrivals::MAX_WORK).contains(&amount) {
                return Err(format!(
                    "{field}: must be from 1 to {}, found {amount}",
                    Arrivals::MAX_WORK
                ));
            }
        }
        self.one_kind(packet)
    }

    fn one_kind(&mut self, packet: &Packet) -> Result<(), String> {
        match (self.kind, packet.work > 1, packet.value > 1) {
            (_, true, true) | (Kind::Work, _, true) | (Kind::Value, true, _) => Err(format!(
                "work: {} and value: {}; the model has packets with work and value 1, or with a value and work 1, not both in one list",
                packet.work, packet.value
            )),
            (Kind::Unit, true, _) => {
                self.kind = Kind::Work;
                Ok(())
            }
            (Kind::Unit, _, true) => {
                self.kind = Kind::Value;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
