//! The process of one host: a network namespace with a kernel's TCP, which plays the flows of its plan.

mod counters;
mod interface;
mod players;

use std::io::{self, BufReader, Stdin, Stdout};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::message::{self, FromHost, HostCounters, HostPlan, ToHost};
use crate::{machine, raw};
use players::Players;

/// Error message of a host whose parent process is gone.
const ALONE: &str = "the process of the switch is gone";

/// Runs the process of a host: it takes orders from standard input and answers on standard output. It
/// ends on request, when the input ends, or with the thread that started it. Returns true if it ended
/// normally; otherwise it has reported the reason.
pub fn serve_host() -> bool {
    let mut host = Host {
        orders: BufReader::new(io::stdin()),
        answers: io::stdout(),
    };
    match host.serve() {
        Ok(()) => true,
        Err(error) => {
            // If that fails too, nobody listens.
            let _ = message::write(&mut host.answers, &FromHost::Failed(error.to_string()));
            false
        }
    }
}

struct Host {
    orders: BufReader<Stdin>,
    answers: Stdout,
}

impl Host {
    fn serve(&mut self) -> io::Result<()> {
        // The namespace, and the interface in it, end with this process.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        raw::unshare_network()?;
        self.answer(&FromHost::Unshared)?;
        let ToHost::Configure(plan) = self.order()? else {
            return Err(unexpected("a plan"));
        };
        machine::settle(&plan.processors, machine::HOST_PRIORITY);
        let steered = interface::configure(&plan)?;
        let mut players = Players::new(&plan)?;
        self.answer(&FromHost::Listening)?;
        loop {
            match self.follow(&plan, &mut players)? {
                ToHost::Stop => break,
                ToHost::Start { zero_ns } => players.start(zero_ns),
                ToHost::Probe { to, connections } => {
                    let times = players::probe(to, connections)?;
                    self.answer(&FromHost::Probed(times))?;
                }
                ToHost::Configure(_) => return Err(unexpected("an order")),
            }
        }
        let counters = HostCounters {
            steered,
            ..counters::read(players.refused())?
        };
        self.answer(&FromHost::Counted(counters))
    }

    /// Plays until the next order.
    fn follow(&mut self, plan: &HostPlan, players: &mut Players) -> io::Result<ToHost> {
        loop {
            let ordered =
                players.turn(plan, |message| message::write(&mut self.answers, message))?;
            if ordered {
                return self.order();
            }
        }
    }

    fn order(&mut self) -> io::Result<ToHost> {
        message::read(&mut self.orders)?.ok_or_else(|| io::Error::other(ALONE))
    }

    fn answer(&mut self, message: &FromHost) -> io::Result<()> {
        message::write(&mut self.answers, message)
    }
}

fn unexpected(expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected {expected}"))
}
