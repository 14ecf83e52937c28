//! Tests of the agent against a real Redis server, with counters of the simulator and manually written ones.
//!
//! Without `redis-server` on the PATH these tests do nothing and print a note. If `BUFGYM_REQUIRE_REDIS` is
//! in the environment, they fail instead.

#![cfg(unix)]

mod closed_loop;
mod configurations;
mod faults;
mod logins;
mod server;
mod switch;
