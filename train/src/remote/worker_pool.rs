//! Rollout workers on hosts.

use std::collections::BTreeMap;

use bufgym_eval::portable::PortableNetwork;
use bufgym_models::ActorWeights;

use super::cluster::unexpected;
use super::message::{Answer, Origin, Part, Play, Request};
use super::{Cluster, HostId, RemoteError};
use crate::rollout::{RolloutResult, WorkerPool, WorkerState};
use crate::{TrainConfig, TrainError};

/// All workers of a training, each on some host, with their states as of the last round.
pub(crate) struct RemoteWorkers {
    cluster: Cluster,
    /// The settings as TOML.
    config: String,
    /// Rounds since this was created.
    round: u64,
    slots: Vec<WorkerSlot>,
}

/// A worker, seen from the head.
struct WorkerSlot {
    /// Host that holds the worker in the state of `state`.
    home: Option<HostId>,
    /// `None` before the worker has begun.
    state: Option<WorkerState>,
    played: RolloutResult,
}

impl RemoteWorkers {
    /// Creates workers in their first episodes, or in stored states, which hosts restore when they play.
    pub(crate) fn new(
        config: &TrainConfig,
        cluster: &Cluster,
        stored: Option<&[WorkerState]>,
    ) -> Result<Self, TrainError> {
        let slot = |index: usize| WorkerSlot {
            home: None,
            state: stored.map(|states| states[index].clone()),
            played: RolloutResult::default(),
        };
        let mut workers = Self {
            cluster: cluster.clone(),
            config: config.to_toml(),
            round: 0,
            slots: (0..config.rollout.workers).map(slot).collect(),
        };
        if stored.is_none() {
            workers.collect(0, None)?;
        }
        Ok(workers)
    }

    fn request(
        &self,
        host: HostId,
        workers: &[usize],
        decisions: u64,
        actor: Option<Box<PortableNetwork>>,
    ) -> Play {
        let origin = |&worker: &usize| {
            let slot = &self.slots[worker];
            let origin = match &slot.state {
                None => Origin::New,
                Some(_) if slot.home == Some(host) => Origin::Held,
                Some(state) => Origin::Stored(Box::new(state.clone())),
            };
            (worker, origin)
        };
        Play {
            config: self.config.clone(),
            round: self.round,
            decisions,
            actor,
            workers: workers.iter().map(origin).collect(),
        }
    }

    fn take(
        &mut self,
        host: HostId,
        workers: &[usize],
        parts: Vec<Part>,
    ) -> Result<(), RemoteError> {
        if !workers.iter().eq(parts.iter().map(|part| &part.worker)) {
            return Err(unexpected());
        }
        for Part {
            worker,
            played,
            state,
        } in parts
        {
            self.slots[worker] = WorkerSlot {
                home: Some(host),
                state: Some(state),
                played,
            };
        }
        Ok(())
    }

    /// Assigns the due workers to hosts, in proportion to the hosts' threads. A worker stays on its host unless that
    /// has too many.
    fn place(&self, due: &[usize], hosts: &[(HostId, usize)]) -> BTreeMap<HostId, Vec<usize>> {
        let mut room = quotas(due.len(), hosts);
        let mut placed: BTreeMap<HostId, Vec<usize>> = BTreeMap::new();
        let mut homeless = Vec::new();
        for &worker in due {
            let home = self.slots[worker].home;
            match home.and_then(|home| Some((home, room.get_mut(&home)?))) {
                Some((home, room)) if *room > 0 => {
                    *room -= 1;
                    placed.entry(home).or_default().push(worker);
                }
                _ => homeless.push(worker),
            }
        }
        let free = room
            .into_iter()
            .flat_map(|(host, room)| std::iter::repeat_n(host, room));
        for (worker, host) in homeless.into_iter().zip(free) {
            placed.entry(host).or_default().push(worker);
        }
        placed
    }
}

impl WorkerPool for RemoteWorkers {
    /// If a host is lost meanwhile, its workers play the round again on others.
    fn collect(&mut self, decisions: u64, actor: Option<&ActorWeights>) -> Result<(), TrainError> {
        let actor = actor.map(|actor| Box::new(PortableNetwork::from(actor)));
        let mut due: Vec<usize> = (0..self.slots.len()).collect();
        while !due.is_empty() {
            let groups = self.place(&due, &self.cluster.hosts()?);
            let request = |(&host, workers): (&HostId, &Vec<usize>)| {
                let play = self.request(host, workers, decisions, actor.clone());
                (host, Request::Play(play))
            };
            let answers = self.cluster.ask(groups.iter().map(request).collect())?;
            due.clear();
            for ((host, workers), answer) in groups.into_iter().zip(answers) {
                match answer {
                    Some(Answer::RolloutResult(parts)) => self.take(host, &workers, parts)?,
                    Some(_) => return Err(unexpected().into()),
                    None => due.extend(workers),
                }
            }
            due.sort_unstable();
        }
        self.round += 1;
        Ok(())
    }

    fn played(&self) -> Vec<&RolloutResult> {
        self.slots.iter().map(|slot| &slot.played).collect()
    }

    fn states(&self) -> Vec<WorkerState> {
        let states = self.slots.iter().map(|slot| slot.state.clone());
        states.map(|state| state.expect("all have begun")).collect()
    }

    /// The next host of the worker restores it with its new state.
    fn scale(&mut self, worker: usize, factor: f32) {
        let slot = &mut self.slots[worker];
        slot.home = None;
        if let Some(state) = &mut slot.state {
            state.scale(factor);
        }
    }
}

/// Splits so many workers by the threads of the hosts; the remainder of the division goes to the first hosts.
fn quotas(workers: usize, hosts: &[(HostId, usize)]) -> BTreeMap<HostId, usize> {
    let all: usize = hosts.iter().map(|(_, threads)| threads).sum();
    let (mut threads_before, mut given) = (0, 0);
    let share = |&(host, threads): &(HostId, usize)| {
        threads_before += threads;
        let up_to = (workers * threads_before).div_ceil(all.max(1));
        let own = up_to - given;
        given = up_to;
        (host, own)
    };
    hosts.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_follow_the_threads_and_add_up() {
        let of = |workers, threads: &[usize]| {
            let hosts: Vec<(HostId, usize)> =
                (0..).map(HostId).zip(threads.iter().copied()).collect();
            quotas(workers, &hosts)
                .into_values()
                .collect::<Vec<usize>>()
        };
        assert_eq!(of(32, &[2]), [32]);
        assert_eq!(of(32, &[1, 3]), [8, 24]);
        assert_eq!(of(5, &[1, 1]), [3, 2]);
        assert_eq!(of(2, &[4, 4, 4]).iter().sum::<usize>(), 2);
    }
}
