//! Fig. 8: three transports, each with a queue of its own.

use super::loads::rows;
use super::{ABM, DT, settings};
use crate::papers::claim::Claim;
use crate::papers::fabric::{FabricConfig, FigurePlan, PanelPlan, points};
use crate::papers::sweep::{Metric, Series, Sweep, Swept, Tabled, TabledRow};

/// The network of the published file.
const PRESET: &str = "abm-artefact-mixed";

/// Only the in-cast flows are told from the others by their class; the short flows of the two web-search
/// classes are not told from each other.
const TABLE: Tabled = Tabled {
    panel: ("8", ""),
    metric: Metric::IncastP99,
    statement: "99th percentile of the slowdown of in-cast flows with θ-PowerTCP.",
    rows: rows! {
        "DT": [9.2, 9.2, 99.4, 99.8, 101.0, 101.0],
        "ABM": [9.2, 9.2, 9.2, 10.4, 9.2, 9.2],
    },
};

/// The figure, once a scenario can have a transport for each class of flows.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    let label = |load: f64| format!("CUBIC load {} %", 100.0 * load);
    FigurePlan {
        sweep: Sweep {
            figure: "8",
            preset: PRESET,
            settings: settings(&[
                "queues_per_port=8",
                "ack_queue=0",
                "query_share=0.3",
                "transport=cubic",
                "incast_transport=theta-powertcp",
                "incast_priority=3",
                "second_transport=dctcp",
                "second_load=0.1",
                "second_priority=2",
            ]),
            series: vec![Series::new("DT", DT), Series::new("ABM", ABM)],
            points: points(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], label, "load", 100.0),
            x_label: "load of CUBIC, %",
            seeds: config.seeds(),
        },
        panels: vec![PanelPlan {
            id: "8",
            title: "three transports in three queues",
            metric: Metric::IncastP99,
        }],
        tail: Metric::IncastP99,
        method: format!("{PRESET}, {} seeds.", config.seeds()),
        claims: |swept: &Swept| -> Vec<Claim> { TABLE.claims(swept) },
    }
}
