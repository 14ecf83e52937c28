//! The agent, poll by poll.

use std::time::Duration;

use bufgym_env::control::{Controller, action_level};
use bufgym_sim::switch::policy::TriggerCause;

use crate::counters::{self, Source};
use crate::layout::Wanted;
use crate::monitor::{Monitor, News, Timing};
use crate::profiles::{self, Restored, Write, Writer};
use crate::{Databases, Error, Layout, schema};

/// Settings of the agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The part of the switch that is controlled.
    pub wanted: Wanted,
    /// The counters that show the sent and lost volume.
    pub source: Source,
    /// Timing of decisions.
    pub timing: Timing,
    /// Time without new counters after which the old profiles are restored.
    pub stale: Duration,
    /// The largest `dynamic_th` that the switch accepts.
    pub max_threshold: i8,
    /// If true, the agent writes nothing.
    pub dry_run: bool,
}

/// A port that gets another α.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The port.
    pub port: String,
    /// The old `dynamic_th`.
    pub from: i8,
    /// The new `dynamic_th`.
    pub to: i8,
}

/// The outcome of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The switch has not read its counters again.
    Nothing,
    /// The first reading, or counters that restarted.
    Began,
    /// New counts without a decision.
    Counted,
    /// A decision.
    Decided {
        /// The cause of the decision.
        cause: TriggerCause,
        /// Ports with another α.
        changes: Vec<Change>,
        /// The writes of this decision; in a dry run, the writes that were left out.
        writes: Vec<Write>,
    },
    /// No new counters arrived for too long, so the old profiles have been restored.
    Stale(Restored),
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Readings with new counters.
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
    /// The agent's time of the last reading with new counters.
    heard: Duration,
    is_stale: bool,
    tally: Tally,
}

impl<C: Controller> Agent<C> {
    /// Connects the agent to a switch. First restores what a killed agent has left, but not in a dry run.
    /// `clock` is the agent's current time.
    ///
    /// # Errors
    /// Fails if another agent is connected, or if the agent cannot work with the switch.
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

    /// Records that the queues have their old profiles.
    fn old_thresholds(&mut self) {
        let first =
            |port: &crate::layout::Port| port.queues.first().map_or(0, |queues| queues.threshold);
        self.thresholds = self.layout.ports.iter().map(first).collect();
    }

    /// Reads the counters. Decides and writes if a decision is due.
    ///
    /// # Errors
    /// Returns connection errors, an error for a missing counter, and [`Error::Changed`] if somebody else has
    /// given a queue another profile. The caller then ends the agent with [`finish`](Agent::finish), or, if
    /// the connection is gone, [connects](Agent::reconnect) it again.
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

    /// Handles a poll without new counters: after a while, the decisions are out of date.
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
    /// Fails if the connection fails, or if another agent has connected in the meantime.
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

    /// Restores the old profiles, through a new connection if the last one is gone.
    ///
    /// # Errors
    /// Returns the errors of [`profiles::put_back`] and [`reconnect`](Agent::reconnect).
    pub fn finish(mut self) -> Result<Restored, Error> {
        if !self.databases.is_connected() && !self.settings.dry_run {
            self.reconnect()?;
        }
        self.put_back()
    }

    /// Returns profiles that do not belong to the agent, although their names look like the agent's.
    pub fn namesakes(&self) -> Vec<&str> {
        self.writer.namesakes()
    }

    /// Returns the controlled part of the switch.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the `dynamic_th` in force, by port; in a dry run, the values that would be in force.
    pub fn thresholds(&self) -> &[i8] {
        &self.thresholds
    }

    /// Returns the counts of events.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}
