//! The shared-memory switch: one buffer, a queue per port, and the admission seam.
//!
//! [`SharedBuffer`] is the only place that counts bytes; a [`Policy`] sees it read-only and
//! answers one question per arriving packet.

mod base;
mod buffer;
mod open_loop;
pub mod policy;
mod spec;

pub use base::{BasePolicy, UnknownBasePolicy};
pub use buffer::SharedBuffer;
pub use open_loop::{Fate, OpenLoop};
pub use policy::{
    AnyPolicy, Definition, Loss, PacketView, ParameterInfo, Policy, PolicyInfo, Verdict, View,
};
pub use spec::{PolicyParseError, PolicySpec};
