//! The agent, poll by poll.

use std::time::Duration;

use bufgym_env::control::{Controller, action_level};
use bufgym_sim::switch::policy::TriggerCause;

use crate::counters::{self, Source};
use crate::layout::Wanted;
use crate::monitor::{Monitor, News, Timing};
use crate::profiles::{self, Restored, Write, Writer};
use crate::{Databases, Error, Layout, schema};

/// How the agent works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is controlled.
    pub wanted: Wanted,
    /// Which counters tell what was sent and lost.
    pub source: Source,
    /// When decisions come.
    pub timing: Timing,
    /// Without news from the counters for so long, the old profiles come back.
    pub stale: Duration,
    /// The largest `dynamic_th` that the switch takes.
    pub max_threshold: i8,
    /// Write nothing.
    pub dry_run: bool,
}

/// A port that gets another α.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The port.
    pub port: String,
    /// Its `dynamic_th` before.
    pub from: i8,
    /// Its `dynamic_th` from now on.
    pub to: i8,
}

/// What a poll has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The switch has not read its counters anew.
    Nothing,
    /// The first reading, or counters that began anew.
    Began,
    /// Counts, and no decision.
    Counted,
    /// A decision.
    Decided {
        /// Why it came.
        cause: TriggerCause,
        /// Ports with another α.
        changes: Vec<Change>,
        /// What was written, or in a dry run would have been.
        writes: Vec<Write>,
    },
    /// There were no news for too long: the old profiles are back.
    Stale(Restored),
}

/// How often what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Readings with news.
    pub readings: u64,
    /// Decisions.
    pub decisions: u64,
    /// Queue keys that got another profile.
    pub writes: u64,
    /// Times that the counters stopped.
    pub stale: u64,
}

/// An agent at a switch.
pub struct Agent<C> {
    databases: Databases,
    layout: Layout,
    settings: Settings,
    controller: C,
    monitor: Monitor,
    writer: Writer,
    /// `dynamic_th` in force, by port.
    thresholds: Vec<i8>,
    /// The agent's time of the last reading with news.
    heard: Duration,
    is_stale: bool,
    tally: Tally,
}

impl<C: Controller> Agent<C> {
    /// Connects the agent to a switch. What an agent that was killed has left is put back first, but not
    /// in a dry run. `clock` is the agent's time now.
    ///
    /// # Errors
    /// When another agent is there, or the switch is not one that the agent can work with.
    pub fn start(
        mut databases: Databases,
        controller: C,
        settings: Settings,
        clock: Duration,
    ) -> Result<(Agent<C>, Restored), Error> {
        let Timing { shortest, longest } = settings.timing;
        if longest > Duration::ZERO && longest < shortest {
            return Err(Error::Intervals { shortest, longest });
        }
        let mut restored = Restored::default();
        if !settings.dry_run {
            databases.claim()?;
            restored = profiles::restore(&mut databases)?;
        }
        let layout = Layout::find(&mut databases, &settings.wanted)?;
        counters::read(&mut databases, &layout, settings.source)?;
        let writer = Writer::new(&mut databases)?;
        let mut agent = Agent {
            monitor: Monitor::new(&layout, settings.timing),
            thresholds: Vec::new(),
            databases,
            layout,
            settings,
            controller,
            writer,
            heard: clock,
            is_stale: false,
            tally: Tally::default(),
        };
        agent.old_thresholds();
        Ok((agent, restored))
    }

    /// Notes that the queues have their old profiles.
    fn old_thresholds(&mut self) {
        let first =
            |port: &crate::layout::Port| port.queues.first().map_or(0, |queues| queues.threshold);
        self.thresholds = self.layout.ports.iter().map(first).collect();
    }

    /// Reads the counters, and decides and writes where a decision is due.
    ///
    /// # Errors
    /// Those of the connection, a missing counter, and [`Error::Changed`] when somebody else has given a
    /// queue another profile. The caller then ends the agent with [`finish`](Agent::finish), or, where the
    /// connection is gone, [connects](Agent::reconnect) it again.
    pub fn poll(&mut self, clock: Duration) -> Result<Event, Error> {
        if self.writer.is_in_doubt() {
            self.restore()?;
        }
        if !self.settings.dry_run {
            self.writer.verify(&mut self.databases, &self.layout)?;
        }
        let sample = counters::read(&mut self.databases, &self.layout, self.settings.source)?;
        let news = self.monitor.take(sample, clock);
        if news == News::None {
            return self.silence(clock);
        }
        self.heard = clock;
        self.is_stale = false;
        self.tally.readings += 1;
        match news {
            News::None => Ok(Event::Nothing),
            News::Began => Ok(Event::Began),
            News::Counted => Ok(Event::Counted),
            News::Due(cause) => self.decide(cause),
        }
    }

    /// Nothing is new: after a while, what was decided is out of date.
    fn silence(&mut self, clock: Duration) -> Result<Event, Error> {
        if self.is_stale || clock.saturating_sub(self.heard) < self.settings.stale {
            return Ok(Event::Nothing);
        }
        let restored = self.restore()?;
        self.is_stale = true;
        self.tally.stale += 1;
        self.monitor.restart();
        Ok(Event::Stale(restored))
    }

    fn decide(&mut self, cause: TriggerCause) -> Result<Event, Error> {
        let ports = self.layout.ports.len();
        let levels: Vec<u8> = self
            .thresholds
            .iter()
            .map(|&th| schema::level(th))
            .collect();
        let mut action = vec![0.0; ports];
        let observation = self.monitor.observe(&levels);
        self.controller.act(observation, ports, &mut action);
        let threshold =
            |&value: &f32| schema::threshold(action_level(value)).min(self.settings.max_threshold);
        let decided: Vec<(usize, i8)> = action.iter().map(threshold).enumerate().collect();
        let writes = self.writer.plan(&self.layout, &decided);
        let real = !self.settings.dry_run;
        self.writer
            .write(&mut self.databases, &self.layout, &writes, real)?;
        let mut changes = Vec::new();
        for (port, to) in decided {
            let from = std::mem::replace(&mut self.thresholds[port], to);
            if from != to {
                let port = self.layout.ports[port].name.clone();
                changes.push(Change { port, from, to });
            }
        }
        self.tally.decisions += 1;
        let is_queue = |write: &&Write| write.key.starts_with(schema::BUFFER_QUEUE);
        self.tally.writes += writes.iter().filter(is_queue).map(|_| 1).sum::<u64>();
        Ok(Event::Decided {
            cause,
            changes,
            writes,
        })
    }

    fn restore(&mut self) -> Result<Restored, Error> {
        let restored = self.put_back()?;
        self.writer = Writer::new(&mut self.databases)?;
        self.old_thresholds();
        Ok(restored)
    }

    fn put_back(&mut self) -> Result<Restored, Error> {
        let databases = &mut self.databases;
        match self.settings.dry_run {
            true => Ok(Restored::default()),
            false if self.writer.is_in_doubt() => profiles::restore(databases),
            false => profiles::put_back(databases, self.writer.journal()),
        }
    }

    /// Connects to the server again.
    ///
    /// # Errors
    /// When that fails, or another agent has come in the meantime.
    pub fn reconnect(&mut self) -> Result<(), Error> {
        self.databases.reconnect()?;
        if self.settings.dry_run {
            return Ok(());
        }
        let claimed = self.databases.claim();
        if claimed.is_err() {
            self.databases.close();
        }
        claimed
    }

    /// Puts the old profiles back, through a new connection where the last one is gone.
    ///
    /// # Errors
    /// As [`profiles::put_back`] and [`reconnect`](Agent::reconnect).
    pub fn finish(mut self) -> Result<Restored, Error> {
        if !self.databases.is_connected() && !self.settings.dry_run {
            self.reconnect()?;
        }
        self.put_back()
    }

    /// Profiles that are not the agent's, though they have names as the agent gives them.
    pub fn namesakes(&self) -> Vec<&str> {
        self.writer.namesakes()
    }

    /// What is controlled.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// `dynamic_th` in force, by port; in a dry run what would be.
    pub fn thresholds(&self) -> &[i8] {
        &self.thresholds
    }

    /// How often what has happened.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}
