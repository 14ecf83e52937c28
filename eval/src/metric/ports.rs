//! Port slowdowns (NDT paper, §VI-D).

use bufgym_sim::network::{FlowRecord, OneSwitch, SimError, isolated_port};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{Trace, host_number};
use rayon::prelude::*;

/// Mean FCT of the flows to each port of a trace when only the flows to that port are simulated, in
/// the same buffer with complete sharing.
#[derive(Clone, Debug, PartialEq)]
pub struct IsolatedPorts {
    /// One mean per port, milliseconds: `None` for a port without flows, NaN if a flow did not finish.
    mean_fct_ms: Vec<Option<f64>>,
}

impl IsolatedPorts {
    /// Runs one simulation per active port, in parallel on the current pool. The result does not depend
    /// on the number of threads.
    ///
    /// # Errors
    /// Fails if the scenario is invalid or the trace does not fit it.
    pub fn measure(scenario: &Scenario, trace: &Trace) -> Result<IsolatedPorts, SimError> {
        let mean_fct_ms = (0..scenario.port_count())
            .into_par_iter()
            .map(|port| {
                let records = isolated_port(scenario, trace, port)?;
                Ok((!records.is_empty()).then(|| mean_fct_ms(records.iter())))
            })
            .collect::<Result<_, SimError>>()?;
        Ok(IsolatedPorts { mean_fct_ms })
    }

    /// Returns the port slowdowns in a run of the whole trace, for every active port in order: mean FCT of
    /// the flows to the port over their mean FCT without the other ports' flows. `None` if a flow did not
    /// finish in either run.
    pub fn slowdowns(&self, records: &[FlowRecord]) -> Option<Vec<f64>> {
        let topology = OneSwitch {
            ports: self.mean_fct_ms.len(),
        };
        let port_of = |record: &FlowRecord| topology.port_of(host_number(record.spec.dst));
        let mut slowdowns = Vec::new();
        for (port, isolated) in self.mean_fct_ms.iter().enumerate() {
            let Some(isolated) = isolated else { continue };
            let here = records.iter().filter(|record| port_of(record) == port);
            let slowdown = mean_fct_ms(here) / isolated;
            if !slowdown.is_finite() {
                return None;
            }
            slowdowns.push(slowdown);
        }
        Some(slowdowns)
    }
}

/// Returns the mean FCT; NaN if a flow did not finish or there is no flow.
fn mean_fct_ms<'a>(records: impl Iterator<Item = &'a FlowRecord>) -> f64 {
    let (mut sum, mut flows) = (0.0, 0_u64);
    for record in records {
        sum += record.fct.map_or(f64::NAN, |fct| fct.as_ms_f64());
        flows += 1;
    }
    sum / flows as f64
}
