//! Built-in arrivals: the constructions of the papers' proofs, and Poisson bursts.

mod bursts;
mod followlqd;
mod theorem1;
mod theorem2;
mod theorem3;
mod theorem6;
mod theorem7;

use std::fmt;
use std::str::FromStr;

use super::{Arrivals, Packet, SlottedError, Switch};
use bufgym_sim::scenario::suggestion;

/// A source of arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// Theorem 1 of the traffic-parameters paper: LQD with work.
    Theorem1,
    /// Theorem 2: BPD and BAD.
    Theorem2,
    /// Theorem 3: LWD in FIFO order.
    Theorem3,
    /// Theorem 6: MTVD.
    Theorem6,
    /// Theorem 7: MRD.
    Theorem7,
    /// Observation 1 of Credence: FollowLQD.
    FollowLqdLowerBound,
    /// Bursts of the size of the buffer that begin as a Poisson process (Credence, Appendix D).
    PoissonBursts,
}

/// What generators can be told; absent values are derived from the switch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct GeneratorOptions {
    /// Largest work (`k`) of thm1 and thm3.
    pub max_work: Option<u32>,
    /// Largest value (`V`) of thm6 and thm7.
    pub max_value: Option<u32>,
    /// Bursts per slot of poisson-bursts.
    pub burst_rate: Option<f64>,
    /// Seed of poisson-bursts.
    pub seed: u64,
}

/// Packets of generated arrivals at most, about 1.2 GB.
const MAX_PACKETS: u64 = 50_000_000;

impl Generator {
    /// Every generator.
    pub const ALL: [Generator; 7] = [
        Generator::Theorem1,
        Generator::Theorem2,
        Generator::Theorem3,
        Generator::Theorem6,
        Generator::Theorem7,
        Generator::FollowLqdLowerBound,
        Generator::PoissonBursts,
    ];
    /// The names of [`ALL`](Generator::ALL).
    pub const NAMES: [&'static str; 7] = [
        "thm1",
        "thm2",
        "thm3",
        "thm6",
        "thm7",
        "followlqd-lower-bound",
        "poisson-bursts",
    ];
    /// Those with a schedule of the proof.
    pub const SCRIPTED: &'static str = "thm1|thm2|thm3|thm6|thm7|followlqd-lower-bound";

    /// Its name, as it is read.
    pub fn name(self) -> &'static str {
        Generator::NAMES[self as usize]
    }

    /// `rounds` rounds of arrivals for `switch`.
    ///
    /// # Errors
    /// A switch that the construction does not fit, options that it does not have, no rounds, or
    /// too many packets.
    pub fn arrivals(
        self,
        switch: &Switch,
        rounds: u64,
        options: &GeneratorOptions,
    ) -> Result<Arrivals, SlottedError> {
        if rounds == 0 {
            return Err(SlottedError::Input("rounds: must be at least 1".to_owned()));
        }
        self.check_options(options)?;
        let setup = Setup {
            generator: self,
            ports: switch.ports,
            buffer: switch.buffer,
            rounds,
            options: *options,
        };
        match self {
            Generator::Theorem1 => theorem1::arrivals(&setup),
            Generator::Theorem2 => theorem2::arrivals(&setup),
            Generator::Theorem3 => theorem3::arrivals(&setup),
            Generator::Theorem6 => theorem6::arrivals(&setup),
            Generator::Theorem7 => theorem7::arrivals(&setup),
            Generator::FollowLqdLowerBound => followlqd::arrivals(&setup),
            Generator::PoissonBursts => bursts::arrivals(&setup),
        }
    }

    fn check_options(self, options: &GeneratorOptions) -> Result<(), SlottedError> {
        use Generator::{PoissonBursts, Theorem1, Theorem3, Theorem6, Theorem7};
        let given = [
            (
                "max-work",
                options.max_work.is_some(),
                vec![Theorem1, Theorem3],
            ),
            (
                "max-value",
                options.max_value.is_some(),
                vec![Theorem6, Theorem7],
            ),
            (
                "burst-rate",
                options.burst_rate.is_some(),
                vec![PoissonBursts],
            ),
        ];
        for (option, given, takers) in given {
            if given && !takers.contains(&self) {
                let takers: Vec<_> = takers.into_iter().map(Generator::name).collect();
                return Err(SlottedError::Input(format!(
                    "{self} has no {option}; {} has one",
                    takers.join(" and ")
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Generator {
    type Err = SlottedError;

    fn from_str(text: &str) -> Result<Generator, SlottedError> {
        Generator::ALL
            .into_iter()
            .find(|generator| generator.name() == text)
            .ok_or_else(|| {
                SlottedError::Input(format!(
                    "generator '{text}' is not known{}; the generators are {}",
                    suggestion(text, &Generator::NAMES),
                    Generator::NAMES.join(", ")
                ))
            })
    }
}

/// What a construction is built for.
struct Setup {
    generator: Generator,
    ports: u32,
    buffer: u64,
    rounds: u64,
    options: GeneratorOptions,
}

impl Setup {
    fn refuse<T>(&self, problem: impl fmt::Display) -> Result<T, SlottedError> {
        Err(SlottedError::Input(format!(
            "{}: {problem}",
            self.generator
        )))
    }

    /// Two ports or more, and a buffer that holds a packet of each.
    fn needs_ports(&self, least: u32) -> Result<(), SlottedError> {
        if self.ports < least {
            return self.refuse(format_args!(
                "needs at least {least} ports, found {}",
                self.ports
            ));
        }
        if self.buffer < u64::from(self.ports) {
            return self.refuse(format_args!(
                "needs a buffer of at least one packet per port, found {} packets for {} ports",
                self.buffer, self.ports
            ));
        }
        Ok(())
    }

    /// Packets per port of a buffer that the ports divide.
    fn share(&self) -> Result<u64, SlottedError> {
        let ports = u64::from(self.ports);
        if !self.buffer.is_multiple_of(ports) {
            return self.refuse(format_args!(
                "needs a buffer that the number of ports divides, found {} packets for {ports} ports; the nearest are {} and {}",
                self.buffer,
                self.buffer / ports * ports,
                (self.buffer / ports + 1) * ports
            ));
        }
        Ok(self.buffer / ports)
    }

    /// A list that will have so many packets and last for so many slots.
    fn list(&self, packets: Option<u64>, slots: Option<u64>) -> Result<List, SlottedError> {
        match (packets, slots) {
            (Some(packets), Some(slots))
                if packets <= MAX_PACKETS && slots <= Arrivals::MAX_SLOT =>
            {
                Ok(List::with_capacity(packets as usize))
            }
            _ => self.refuse(format_args!(
                "{} rounds with {} ports and a buffer of {} are more than {MAX_PACKETS} packets or {} slots; take fewer rounds or a smaller buffer",
                self.rounds,
                self.ports,
                self.buffer,
                Arrivals::MAX_SLOT
            )),
        }
    }
}

/// The product, if it can be represented.
fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(*factor))
}

/// Packets and the schedule of the proof.
struct List {
    packets: Vec<Packet>,
    script: Vec<bool>,
}

impl List {
    fn with_capacity(packets: usize) -> List {
        List {
            packets: Vec::with_capacity(packets),
            script: Vec::with_capacity(packets),
        }
    }

    fn push(&mut self, packet: Packet, accepted: bool) {
        self.packets.push(packet);
        self.script.push(accepted);
    }

    /// `count` times the same packet, of which the schedule accepts the first `accepted`.
    fn burst(&mut self, packet: Packet, count: u64, accepted: u64) {
        for index in 0..count {
            self.push(packet, index < accepted);
        }
    }
}
