//! Finds UDP packets that were captured twice: at several interfaces of a host, or in both directions of
//! a mirrored port.

use std::collections::{HashMap, VecDeque};

use super::segment::{Content, START, Segment, Tuple};

/// Longest time between two sightings of a packet.
const WINDOW_NS: i128 = 1_000_000;
/// Most packets that are remembered. 100 Gbit/s carry fewer packets of 200 bytes in the window.
const MAX_RECENT: usize = 65_536;
/// Most packets that differ only behind the start of their payload.
const MAX_ALIKE: usize = 64;

/// The flow, the length, the identification and the position of the fragment. If there is no
/// identification, the start of the payload replaces it.
type Key = (Tuple, u64, Option<u32>, u32, [u8; START]);

/// The packets of the last millisecond.
#[derive(Default)]
pub(super) struct Copies {
    seen: HashMap<Key, VecDeque<(i128, Content)>>,
    /// The time and the key of each; oldest first.
    order: VecDeque<(i128, Key)>,
}

impl Copies {
    /// Returns true if the same packet came within a millisecond before, or remembers this one.
    /// A packet that cannot be identified, without identification and with its payload cut off, is not
    /// a copy.
    pub(super) fn is_copy(&mut self, time_ns: i128, segment: &Segment) -> bool {
        let Some(content) = segment.content else {
            return false;
        };
        let needed = segment.payload.min(START as u64);
        if segment.payload == 0 || content.id.is_none() && (content.captured as u64) < needed {
            return false;
        }
        self.forget(time_ns);
        let start = match content.id {
            Some(_) => [0; START],
            None => content.start,
        };
        let key = (
            segment.tuple,
            segment.payload,
            content.id,
            content.offset,
            start,
        );
        let alike = self.seen.entry(key).or_default();
        let is_near = |came: i128| (time_ns - came).abs() <= WINDOW_NS;
        let mut others = alike.iter();
        if others.any(|(came, other)| is_near(*came) && other.fits(&content)) {
            return true;
        }
        if alike.len() < MAX_ALIKE && self.order.len() < MAX_RECENT {
            alike.push_back((time_ns, content));
            self.order.push_back((time_ns, key));
        }
        false
    }

    /// Removes packets that came too long before or, in a capture that is not in order, too long after.
    fn forget(&mut self, time_ns: i128) {
        while let Some((came, key)) = self.order.front()
            && (self.order.len() == MAX_RECENT || (time_ns - came).abs() > WINDOW_NS)
        {
            if let Some(alike) = self.seen.get_mut(key) {
                alike.pop_front();
                if alike.is_empty() {
                    self.seen.remove(key);
                }
            }
            self.order.pop_front();
        }
    }
}
