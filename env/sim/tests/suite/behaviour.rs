//! Behaviour of the simulator for any network, traffic, policy and transport: properties over random
//! set-ups, one file for each behaviour, and hashes of known results.

mod accounting;
mod completion;
mod differential;
mod fabric;
mod golden;
mod grid;
mod limits;
mod links;
mod lossless;
mod pools;
mod priorities;
mod probe;
mod queues;
mod rates;
mod rdma;
mod senders;
mod setup;
mod transports;
mod unscheduled;
mod windows;
mod workload;
