//! The paper's testbed at a rate that a program on one processor can serve.
//!
//! The paper's ports have 1 Gbit/s. At a lower rate, every time is longer by the same factor: the propagation
//! of the links and the minimum RTO. Every quantity in bytes stays: the buffer, the flows, the packets. So
//! the buffer is as many packets, as many bandwidth-delay products and the same share of a flow as in the
//! paper. A timeout lasts the same multiple of the time in which the buffer drains. If the drain time were
//! kept instead of the bytes, the buffer would be smaller than the initial windows of the three senders to a
//! port.

use bufgym_eval::format;
use bufgym_sim::scenario::{Scenario, ScenarioError};

use super::super::NdtFigure;
use super::workload;

/// The preset of the hosts: Linux, with the sizes of Ethernet frames.
const HOSTS: &str = "testbed-4x100m";

/// Default rate of a port, bit/s. Of the measured rates it is the highest at which the switch has most of its
/// processor left.
const RATE_BPS: u64 = 200_000_000;

/// Settings that the figure sweeps.
pub const SWEPT: [&str; 2] = ["load", "workload"];

/// Returns the scenario of a panel with `flows` flows in a trace, before `settings` (`KEY=VALUE`) change it.
///
/// # Errors
/// Fails if a setting does not exist or makes the scenario inconsistent.
pub fn scenario(
    figure: NdtFigure,
    flows: u64,
    settings: &[String],
) -> Result<Scenario, ScenarioError> {
    let paper = Scenario::preset(super::PRESET)?;
    let changed = |mut scenario: Scenario| -> Result<Scenario, ScenarioError> {
        scenario.set_all(settings)?;
        Ok(scenario)
    };
    let mut scenario = Scenario::preset(HOSTS)?;
    scenario.network.rate_bps = RATE_BPS;
    let rate_bps = changed(scenario.clone())?.network.rate_bps;
    let stretched = |time: u64| {
        let time =
            u128::from(time) * u128::from(paper.network.rate_bps) / u128::from(rate_bps.max(1));
        u64::try_from(time).unwrap_or(u64::MAX)
    };
    scenario.network.rate_bps = rate_bps;
    scenario.network.propagation_ns = stretched(paper.network.propagation_ns);
    scenario.tcp.min_rto_us = stretched(paper.tcp.min_rto_us);
    scenario.network.buffer_bytes = paper.network.buffer_bytes;
    scenario.traffic.arrivals = paper.traffic.arrivals;
    scenario.traffic.incast_degree = paper.traffic.incast_degree;
    scenario.traffic.active_ports = paper.traffic.active_ports;
    scenario.set(&format!("flows={flows}"))?;
    scenario.set(&format!("workload={}", workload(figure).0))?;
    let scenario = changed(scenario)?;
    scenario.validate()?;
    Ok(scenario)
}

/// Describes the differences from the paper's scenario in words.
///
/// # Errors
/// Fails if the preset of the paper's testbed does not exist.
pub fn described(scenario: &Scenario) -> Result<String, ScenarioError> {
    let paper = Scenario::preset(super::PRESET)?;
    let factor = paper.network.rate_bps as f64 / scenario.network.rate_bps as f64;
    let drain_ms = |scenario: &Scenario| {
        scenario.network.buffer_bytes as f64 * 8e3 / scenario.network.rate_bps as f64
    };
    let packets = scenario.network.buffer_bytes / scenario.full_packet_bytes().max(1);
    Ok(format!(
        "The paper’s ports have {}, these have {}. Unless it was set otherwise, time is stretched by the \
         factor {}, with links of {} and a minimum RTO of {}, and what is counted in bytes is kept: the \
         256 KB of buffer belong to the paper’s rate and stay as many packets, as many bandwidth-delay \
         products and the same share of a flow. Here the buffer has {}, {packets} full packets, and \
         drains through one port in {} ms (the paper’s: {} ms).",
        format::rate(paper.network.rate_bps),
        format::rate(scenario.network.rate_bps),
        format::significant(factor),
        format::microseconds(scenario.network.propagation_ns / 1_000),
        format::microseconds(scenario.tcp.min_rto_us),
        format::bytes(scenario.network.buffer_bytes),
        format::significant(drain_ms(scenario)),
        format::significant(drain_ms(&paper)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[&str]) -> Scenario {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        scenario(NdtFigure::DataMining, 15, &settings).unwrap()
    }

    #[test]
    fn time_is_stretched_and_bytes_are_kept_at_every_rate() {
        for (rate, factor) in [(200_000_000, 5), (50_000_000, 20), (1_000_000_000, 1)] {
            let scenario = of(&[&format!("rate_bps={rate}")]);
            assert_eq!(scenario.network.propagation_ns, 10_000 * factor);
            assert_eq!(scenario.tcp.min_rto_us, 200_000 * factor);
            assert_eq!(scenario.network.buffer_bytes, 256_000);
        }
        let default = of(&[]);
        assert_eq!(default, of(&["rate_bps=200000000"]));
        assert_eq!(
            (default.traffic.flows.min, default.traffic.flows.max),
            (15, 15)
        );
        assert_eq!(default.traffic.workload.to_string(), "data_mining");
    }

    #[test]
    fn what_is_set_is_not_scaled() {
        let scenario = of(&["min_rto_us=200000", "buffer_bytes=51200", "flows=4"]);
        assert_eq!(scenario.tcp.min_rto_us, 200_000);
        assert_eq!(scenario.network.buffer_bytes, 51_200);
        assert_eq!(
            (scenario.traffic.flows.min, scenario.traffic.flows.max),
            (4, 4)
        );
        let words = described(&scenario).unwrap();
        assert!(
            words.contains("drains through one port in 2.05 ms"),
            "{words}"
        );
        let unknown = super::scenario(NdtFigure::WebSearch, 5, &["nothing=1".to_owned()]);
        assert!(unknown.is_err());
    }
}
