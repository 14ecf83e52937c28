//! The agent against a real Redis server, with counters of the simulator and ones made by hand.
//!
//! Without `redis-server` on the PATH these tests do nothing and say so; with `BUFGYM_REQUIRE_REDIS` in the
//! environment they fail then.

#![cfg(unix)]

mod closed_loop;
mod configurations;
mod faults;
mod logins;
mod server;
mod switch;
