//! Built-in arrivals: the constructions of the papers' proofs, and Poisson bursts.

mod constructions;

use std::fmt;
use std::str::FromStr;

use bufgym_util::convert::index;
use bufgym_util::input::{excerpt, suggestion};
use bufgym_util::memory::Estimate;

use super::arrivals::Prediction;
use super::{Arrivals, Packet, SlottedError, Switch};

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
    /// Bursts of the size of the buffer at the times of a Poisson process (Credence, Appendix D).
    PoissonBursts,
}

/// Options of the generators. Absent values are derived from the switch.
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

/// Largest number of packets of a list of arrivals; they take about 1.2 GB.
pub(super) const MAX_PACKETS: u64 = 50_000_000;

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
    /// The names of the generators that have a schedule of the proof.
    pub(crate) const SCRIPTED: &'static str = "thm1|thm2|thm3|thm6|thm7|followlqd-lower-bound";

    /// Returns the name of the generator, as it is read.
    pub fn name(self) -> &'static str {
        Generator::NAMES[self as usize]
    }

    /// Generates `rounds` rounds of arrivals for `switch`.
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
            Generator::Theorem1 => constructions::theorem1(&setup),
            Generator::Theorem2 => constructions::theorem2(&setup),
            Generator::Theorem3 => constructions::theorem3(&setup),
            Generator::Theorem6 => constructions::theorem6(&setup),
            Generator::Theorem7 => constructions::theorem7(&setup),
            Generator::FollowLqdLowerBound => constructions::followlqd_lower_bound(&setup),
            Generator::PoissonBursts => constructions::poisson_bursts(&setup),
        }
    }

    fn check_options(self, options: &GeneratorOptions) -> Result<(), SlottedError> {
        use Generator::{PoissonBursts, Theorem1, Theorem3, Theorem6, Theorem7};
        let GeneratorOptions {
            max_work,
            max_value,
            burst_rate,
            ..
        } = options;
        let takers_of: [(_, _, &[Generator]); 3] = [
            ("max-work", max_work.is_some(), &[Theorem1, Theorem3]),
            ("max-value", max_value.is_some(), &[Theorem6, Theorem7]),
            ("burst-rate", burst_rate.is_some(), &[PoissonBursts]),
        ];
        for (option, given, takers) in takers_of {
            if given && !takers.contains(&self) {
                let takers: Vec<_> = takers.iter().map(|taker| taker.name()).collect();
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
                    "generator '{}' is not known{}; the generators are {}",
                    excerpt(text),
                    suggestion(text, &Generator::NAMES),
                    Generator::NAMES.join(", ")
                ))
            })
    }
}

/// Settings of a construction.
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

    /// Checks that there are at least `least` ports and that the buffer holds a packet of each.
    fn check_ports(&self, least: u32) -> Result<(), SlottedError> {
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

    /// Returns the packets of the buffer per port. The number of ports must divide the buffer.
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

    /// Returns an empty list for this number of packets in this number of slots; `None` means too large
    /// for 64 bits.
    fn list(&self, packets: Option<u64>, slots: Option<u64>) -> Result<List, SlottedError> {
        match (packets, slots) {
            (Some(packets), Some(slots))
                if packets <= MAX_PACKETS && slots <= Arrivals::MAX_SLOT =>
            {
                Estimate::default()
                    .with(
                        "the packets",
                        "--rounds, --buffer or --ports",
                        packets * (size_of::<Packet>() + size_of::<bool>()) as u64,
                    )
                    .check()
                    .or_else(|error| self.refuse(error))?;
                Ok(List::with_capacity(index(packets)))
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

/// Returns the product of the factors; `None` if it does not fit into 64 bits.
fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(*factor))
}

/// Packets, each with a mark that is true if the schedule of the proof accepts it.
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

    /// Adds `count` copies of a packet; the schedule accepts the first `accepted`.
    fn burst(&mut self, packet: Packet, count: u64, accepted: u64) {
        for index in 0..count {
            self.push(packet, index < accepted);
        }
    }

    /// Returns the arrivals of a proof, whose rounds end before slot `rounds_end`.
    fn arrivals(self, rounds_end: u64, prediction: Prediction) -> Arrivals {
        Arrivals::constructed(
            self.packets,
            rounds_end,
            Some(self.script),
            Some(prediction),
        )
    }
}
