//! The observation in eight-bit integers, as a dataplane computes it: with floating point only for
//! the constants, and without division per decision.
//!
//! A code `c` of the last action stands for the normalised value `(c - 128)/128`, a code of any
//! other feature for `c/255`. `dataplane/ndt_control.h` computes the same codes in C.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::{FEATURES, HISTORY, INITIAL_LEVEL, LOG_RANGE, Reading};
use bufgym_sim::scenario::Scenario;
use bufgym_util::convert::{floor_u8, floor_u32, floor_u64};

/// The largest code, which stands for 1.
const LARGEST: u8 = 255;

/// [`LOG_RANGE`], which is a whole number.
const WHOLE_LOG_RANGE: u64 = floor_u64(LOG_RANGE);

/// Bound of the units of [`log_code`], so that products with its thresholds fit into 64 bits.
const UNIT_LIMIT: u64 = 1 << 41;

/// Value `j` is the least `x/unit` that has code `j`, in parts of 65,536: `log(1 + x/unit)/log 65`
/// is `(j - 1/2)/255` there. Value 0 is not used.
static LOG_THRESHOLDS: LazyLock<[u32; 256]> = LazyLock::new(|| {
    let threshold = |code: usize| {
        let normalised = (code as f64 - 0.5) / f64::from(LARGEST);
        let ratio = libm::exp(normalised * libm::log(LOG_RANGE)) - 1.0;
        floor_u32((65_536.0 * ratio).ceil())
    };
    std::array::from_fn(|code| if code == 0 { 0 } else { threshold(code) })
});

/// Code of `log(1 + x/unit)/log 65`, to the nearest, by comparisons, shifts and eight products.
///
/// # Panics
/// In debug builds, when `unit` is 0 or not below 2^41.
pub fn log_code(x: u64, unit: u64) -> u8 {
    debug_assert!((1..UNIT_LIMIT).contains(&unit), "a unit of {unit}");
    if x >= WHOLE_LOG_RANGE * unit {
        return LARGEST;
    }
    let scaled = x << 16;
    greatest_code(|code| scaled >= u64::from(LOG_THRESHOLDS[usize::from(code)]) * unit)
}

/// Code of `bytes/buffer_bytes`, to the nearest, halves up.
pub fn queue_code(bytes: u64, buffer_bytes: u64) -> u8 {
    greatest_code(|code| 510 * bytes >= (2 * u64::from(code) - 1) * buffer_bytes)
}

/// Code of the last action: the centre of the cell of level `level`.
pub fn level_code(level: u8) -> u8 {
    16 * (2 * level + 1)
}

/// The greatest code of at least 1 for which `holds`, or 0, by bisection. If `holds` for a code, it
/// must hold for all smaller ones.
fn greatest_code(holds: impl Fn(u8) -> bool) -> u8 {
    let mut found = 0;
    for bit in (0..8).rev() {
        let code = found | 1 << bit;
        if holds(code) {
            found = code;
        }
    }
    found
}

/// Codes of an observation `[.., HISTORY, FEATURES]` that is already normalised, rounded to the
/// nearest, halves up, and clamped.
pub fn encode(observation: &[f32]) -> Vec<u8> {
    let code = |(place, &value): (usize, &f32)| {
        let value = f64::from(value);
        let scaled = match place % FEATURES {
            LAST_ACTION => 128.0 * value + 128.0,
            _ => f64::from(LARGEST) * value,
        };
        floor_u8(libm::floor(scaled + 0.5))
    };
    observation.iter().enumerate().map(code).collect()
}

const LAST_ACTION: usize = 3;

/// Constants of a run that a dataplane needs to compute the codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeUnits {
    /// Size of the buffer B, bytes.
    pub buffer_bytes: u64,
    /// β, bytes: the unit of the enqueued and dropped bytes.
    pub beta: u64,
    /// Time to send β at line rate, 8β/C, nanoseconds: the unit of the time since the last
    /// decision. At least 1, and at most 2^41 - 1 (36 minutes).
    pub drain_ns: u64,
}

impl CodeUnits {
    /// The units of `scenario`, with β = B/N (paper, §IV-B) but at least 1.
    pub fn new(scenario: &Scenario) -> CodeUnits {
        let beta =
            (scenario.network.buffer_bytes / u64::from(scenario.network.ports.max(1))).max(1);
        let rate = u128::from(scenario.network.rate_bps.max(1));
        let drain_ns = (8_000_000_000 * u128::from(beta) + rate / 2) / rate;
        CodeUnits {
            buffer_bytes: scenario.network.buffer_bytes,
            beta,
            drain_ns: u64::try_from(drain_ns)
                .map_or(UNIT_LIMIT - 1, |ns| ns.clamp(1, UNIT_LIMIT - 1)),
        }
    }
}

/// The codes of all ports, `[ports, HISTORY, FEATURES]`, newest step last.
///
/// Steps before the first decision are zero, except their last action, which is that of α = 1.
#[derive(Clone, Debug)]
pub struct CodeHistory {
    codes: Vec<u8>,
}

impl CodeHistory {
    /// An empty history.
    pub fn new(ports: usize) -> CodeHistory {
        let mut codes = vec![0; ports * HISTORY * FEATURES];
        for step in codes.chunks_exact_mut(FEATURES) {
            step[LAST_ACTION] = level_code(INITIAL_LEVEL);
        }
        CodeHistory { codes }
    }

    /// Appends a step for every port from the switch's counters and forgets the oldest. Call it
    /// once per decision of the switch.
    ///
    /// # Panics
    /// When the switch has another number of ports.
    pub fn observe(&mut self, at: &Reading<'_>) {
        let histories = self.codes.chunks_exact_mut(HISTORY * FEATURES);
        assert_eq!(histories.len(), at.ports(), "one history per port");
        let mut units = at.units(0);
        let mut elapsed = log_code(at.elapsed_ns(), units.drain_ns);
        for (port, history) in histories.enumerate() {
            let own = at.units(port);
            if own != units {
                units = own;
                elapsed = log_code(at.elapsed_ns(), units.drain_ns);
            }
            let volumes = at.volumes(port);
            history.copy_within(FEATURES.., 0);
            history[(HISTORY - 1) * FEATURES..].copy_from_slice(&[
                queue_code(at.queue_bytes(port), units.buffer_bytes),
                log_code(volumes.enqueued, units.beta),
                log_code(volumes.dropped, units.beta),
                level_code(at.levels()[port]),
                elapsed,
            ]);
        }
    }

    /// `[ports, HISTORY, FEATURES]`, row-major.
    pub fn as_slice(&self) -> &[u8] {
        &self.codes
    }
}

/// The C header with the thresholds of [`log_code`], `dataplane/ndt_codes.h`.
pub fn codes_header() -> String {
    let mut table = String::new();
    for row in LOG_THRESHOLDS.chunks(8) {
        let values: Vec<String> = row.iter().map(|value| format!("{value:7}u")).collect();
        writeln!(table, "    {},", values.join(", ")).expect("a String takes all text");
    }
    format!(
        "/* Constants of the eight-bit observation. Generated by\n \
         *     cargo run --release -p bufgym-env --example codes_header > dataplane/ndt_codes.h\n \
         */\n\
         #ifndef NDT_CODES_H\n\
         #define NDT_CODES_H\n\
         \n\
         #include <stdint.h>\n\
         \n\
         /* Steps of history and features of a step. */\n\
         #define NDT_HISTORY {HISTORY}\n\
         #define NDT_FEATURES {FEATURES}\n\
         \n\
         /* The unit of a logarithmic code is below 2^NDT_UNIT_BITS, so that products fit into 64 bits. */\n\
         #define NDT_UNIT_BITS {unit_bits}\n\
         \n\
         /* A value of NDT_LOG_RANGE units or more has the largest code. */\n\
         #define NDT_LOG_RANGE {range}u\n\
         \n\
         /* Value j is the least x/unit that has code j, in parts of 65536; value 0 is not used. */\n\
         static const uint32_t ndt_log_thresholds[256] = {{\n\
         {table}}};\n\
         \n\
         #endif\n",
        unit_bits = UNIT_LIMIT.ilog2(),
        range = WHOLE_LOG_RANGE,
    )
}

#[cfg(test)]
mod tests;
