//! Formats of flow lists: their names and options, and the numbers that are written in them.

use std::fmt;
use std::str::FromStr;

use bufgym_util::input::{excerpt, suggestion};

/// Largest power of ten that fits into 128 bits.
const MAX_POWER: u32 = 38;

/// A format of flows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// `id,src,dst,start_ns,size_bytes[,kind,query,priority]`.
    Csv,
    /// A packet capture, pcap or pcapng.
    Pcap,
    /// A list of HPCC (SIGCOMM 2019) or of programs derived from its code, ns3-datacenter and SimAI:
    /// the number of flows, then lines `src dst priority port bytes start_s`.
    Hpcc,
    /// A connection matrix (`.cm`) of htsim, without triggers.
    Htsim,
}

impl FlowFormat {
    /// Every format.
    pub const ALL: [FlowFormat; 4] = [
        FlowFormat::Csv,
        FlowFormat::Pcap,
        FlowFormat::Hpcc,
        FlowFormat::Htsim,
    ];

    /// Returns the name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FlowFormat::Csv => "csv",
            FlowFormat::Pcap => "pcap",
            FlowFormat::Hpcc => "hpcc",
            FlowFormat::Htsim => "htsim",
        }
    }
}

impl fmt::Display for FlowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for an unknown name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not one of {}{}",
    excerpt(.0),
    FlowFormat::ALL.map(FlowFormat::name).join(", "),
    suggestion(.0, &FlowFormat::ALL.map(FlowFormat::name))
)]
pub struct UnknownFormat(String);

impl FromStr for FlowFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<FlowFormat, UnknownFormat> {
        let mut all = FlowFormat::ALL.into_iter();
        all.find(|format| format.name() == text)
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Options for reading a flow list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// The format; `None` if the content determines it.
    pub format: Option<FlowFormat>,
    /// Number of hosts; the hosts of the list must be below it.
    pub ports: u32,
    /// Number of the first host in the list, which becomes host 0.
    pub host_offset: u32,
}

impl Default for ListOptions {
    fn default() -> ListOptions {
        ListOptions {
            format: None,
            ports: u32::MAX,
            host_offset: 0,
        }
    }
}

impl ListOptions {
    /// Returns the host that the list calls `given`, or the problem with it.
    pub(super) fn host(&self, field: &str, given: u32) -> Result<u32, String> {
        given.checked_sub(self.host_offset).ok_or_else(|| {
            let offset = self.host_offset;
            format!("{field}: host {given} is below {offset}, the first one by --host-offset")
        })
    }

    /// Returns the problem with the ends of a flow, if there is one.
    pub(super) fn ends_problem(&self, src: u32, dst: u32) -> Option<String> {
        let problem = endpoint_problem(src, dst, self.ports)?;
        // A list that counts from 1 seems to have one host too many.
        let one_more = self.host_offset == 0 && src.max(dst) == self.ports;
        Some(match one_more {
            true => format!("{problem}; if the first host of the list is 1, give --host-offset 1"),
            false => problem,
        })
    }
}

/// Returns the problem with the ends of a flow among `ports` hosts, if there is one.
pub(super) fn endpoint_problem(src: u32, dst: u32, ports: u32) -> Option<String> {
    for (field, host) in [("src", src), ("dst", dst)] {
        if host >= ports {
            return Some(format!(
                "{field}: host {host} does not exist; with {ports} ports hosts are 0 to {}",
                ports.saturating_sub(1)
            ));
        }
    }
    (src == dst).then(|| format!("dst: equals src ({src}); a flow needs two different hosts"))
}

/// Returns a decimal number such as `2`, `2.0005` or `5e-06`, times 10^`exponent`, rounded to the
/// nearest whole number. Exact, except for digits beyond the 38th. `None` for anything else, and beyond
/// 64 bits.
pub(super) fn decimal(text: &str, exponent: i32) -> Option<u64> {
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut mantissa = 0_u128;
    let mut scale = exponent + i32::from(power);
    let mut digits = 0;
    for (place, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if !digit.is_ascii_digit() {
            return None;
        }
        let is_whole = place < whole.len();
        if digits < MAX_POWER {
            mantissa = mantissa * 10 + u128::from(digit - b'0');
            digits += u32::from(mantissa > 0);
            scale = scale.saturating_sub(i32::from(!is_whole));
        } else {
            scale = scale.saturating_add(i32::from(is_whole));
        }
    }
    if mantissa == 0 {
        return Some(0);
    }
    let factor = |power: u32| (power <= MAX_POWER).then(|| 10_u128.pow(power));
    let value = if scale >= 0 {
        mantissa.checked_mul(factor(scale.unsigned_abs())?)?
    } else {
        // A number below 1/2 is 0.
        factor(scale.unsigned_abs()).map_or(0, |divisor| {
            let (quotient, rest) = (mantissa / divisor, mantissa % divisor);
            quotient + u128::from(rest >= divisor - rest)
        })
    };
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn decimal_numbers_are_exact_and_rounded() {
        let long = format!("1{}.5", "0".repeat(17));
        for (text, exponent, expected) in [
            ("2", 9, Some(2_000_000_000)),
            ("2.0005", 9, Some(2_000_500_000)),
            ("2.000001500", 9, Some(2_000_001_500)),
            // A float of 64 bits would give 8388608000000001 here.
            ("8388608.000000001", 9, Some(8_388_608_000_000_001)),
            ("0.0000000005", 9, Some(1)),
            ("0.00000000049", 9, Some(0)),
            (".5", 0, Some(1)),
            ("5.", 0, Some(5)),
            ("5e-06", 9, Some(5_000)),
            ("1.5E+3", 0, Some(1_500)),
            ("500000000", -3, Some(500_000)),
            ("1499", -3, Some(1)),
            ("1500", -3, Some(2)),
            ("0e999", 9, Some(0)),
            ("0.000", 9, Some(0)),
            ("1e-9999", 9, Some(0)),
            (&long, 0, Some(100_000_000_000_000_001)),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("18446744073709551616", 0, None),
            ("1e30", 9, None),
            ("1e32767", 9, None),
            ("1e40000", 0, None),
            ("-1", 0, None),
            ("+1", 0, None),
            ("", 0, None),
            (".", 0, None),
            ("e5", 0, None),
            ("1e", 0, None),
            ("1.2.3", 0, None),
            ("nan", 0, None),
            ("inf", 0, None),
            ("1_0", 0, None),
        ] {
            assert_eq!(decimal(text, exponent), expected, "{text} e{exponent}");
        }
        let digits = "9".repeat(100);
        assert_eq!(decimal(&digits, -90), Some(10_000_000_000));
        assert_eq!(decimal(&format!("0.{digits}"), 0), Some(1));
        assert_eq!(decimal(&format!("{}1", "0".repeat(100)), 0), Some(1));
    }
}
