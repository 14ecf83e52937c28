//! The named scenarios: the default one, and files of `presets/` that change it.

use super::Scenario;

/// A scenario with a name and a description of one line.
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// The description, for listings.
    pub summary: &'static str,
    /// The settings that differ from another preset's, as TOML; empty for the default.
    toml: &'static str,
}

impl Preset {
    /// Builds the scenario.
    ///
    /// # Panics
    /// When its file has a mistake, which a test would find.
    pub fn scenario(&self) -> Scenario {
        match self.toml {
            "" => Scenario::default(),
            toml => Scenario::from_toml_str(toml, self.name).expect("tests read every preset"),
        }
    }
}

/// Name of the preset that is used by default.
pub const DEFAULT_PRESET: &str = "ndt-16x1g";

/// Every preset, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: DEFAULT_PRESET,
        summary: "16 hosts at 1 Gbit/s on one switch with 1 MB of shared buffer, web search at \
                  50 % load per active port, NewReno with SACK, minRTO 200 ms (NDT §VI-A)",
        toml: "",
    },
    Preset {
        name: "ns3-16x1g",
        summary: "the same switch with the packet sizes, handshake, capped window, host queues and \
                  loss recovery of ns-3 3.37, for comparing the simulators",
        toml: include_str!("presets/ns3-16x1g.toml"),
    },
    Preset {
        name: "ndt-96x10g-incast",
        summary: "96 ports at 10 Gbit/s with 6 MB of buffer: 95 hosts answer one port at once every \
                  10 ms while 47 others receive elephants, NewReno, minRTO 200 ms (NDT §VI-B, \
                  Fig. 8(d))",
        toml: include_str!("presets/ndt-96x10g-incast.toml"),
    },
    Preset {
        name: "ndt-testbed-4x1g",
        summary: "4 hosts at 1 Gbit/s with 256 kB of buffer, web search or data mining at 10 to 90 % \
                  load, CUBIC, minRTO 200 ms (NDT §VI-C, Fig. 9)",
        toml: include_str!("presets/ndt-testbed-4x1g.toml"),
    },
    Preset {
        name: "ndt-4to2-incast",
        summary: "4 senders to two ports at 1 Gbit/s with 256 kB of buffer: overlapping bursts over \
                  elephants, NewReno, minRTO 200 ms (NDT §VI-D, Fig. 10)",
        toml: include_str!("presets/ndt-4to2-incast.toml"),
    },
    Preset {
        name: "linux-16x1g",
        summary: "ndt-16x1g with the senders of Linux: CUBIC, RACK-TLP, delayed acknowledgements, \
                  handshake, receive window of 6 MB, minRTO 200 ms",
        toml: include_str!("presets/linux-16x1g.toml"),
    },
    Preset {
        name: "linux-16x25g",
        summary: "the same senders and traffic at 25 Gbit/s, with 3.84 MB of buffer and links of \
                  2 us",
        toml: include_str!("presets/linux-16x25g.toml"),
    },
    Preset {
        name: "testbed-4x100m",
        summary: "4 Linux hosts at 100 Mbit/s with 256 kB of buffer, links of 100 us, web search from \
                  three senders to every port, minRTO 200 ms: ndt-testbed-4x1g for `bufgym testbed`",
        toml: include_str!("presets/testbed-4x100m.toml"),
    },
    Preset {
        name: "dctcp-16x10g",
        summary: "the same traffic at 10 Gbit/s with DCTCP as Linux has it, 1.54 MB of buffer, \
                  marks from 65 packets on and links of 2 us",
        toml: include_str!("presets/dctcp-16x10g.toml"),
    },
    Preset {
        name: "abm-leafspine",
        summary: "256 hosts on 8 leaves and 8 spines at 10 Gbit/s, links of 10 us, 9.6 KiB of buffer \
                  per port and Gbit/s, DCTCP, minRTO 10 ms (ABM §4.1)",
        toml: include_str!("presets/abm-leafspine.toml"),
    },
    Preset {
        name: "abm-artefact",
        summary: "the same with 64 hosts on 2 leaves, and 2 spines with 4 links to each leaf, as in \
                  the published runs of ABM",
        toml: include_str!("presets/abm-artefact.toml"),
    },
    Preset {
        name: "abm-artefact-mixed",
        summary: "160 hosts on 5 leaves with three transports in three queues, as in the published run of ABM's Fig. 8",
        toml: include_str!("presets/abm-artefact-mixed.toml"),
    },
    Preset {
        name: "credence-leafspine",
        summary: "256 hosts on 16 leaves and 4 spines at 10 Gbit/s, links of 3 us, 5.12 KiB of \
                  buffer per port and Gbit/s, DCTCP, minRTO 10 ms (Credence §4.1)",
        toml: include_str!("presets/credence-leafspine.toml"),
    },
    Preset {
        name: "credence-train",
        summary: "the same with 32 hosts on 2 leaves, links of 4 us and 5.14 KiB, on which the \
                  published forest of Credence was trained",
        toml: include_str!("presets/credence-train.toml"),
    },
    Preset {
        name: "leafspine-4x4",
        summary: "16 hosts on 4 leaves and 2 spines at 10 Gbit/s, links of 10 us, 9.6 KiB of buffer \
                  per port and Gbit/s, DCTCP, minRTO 10 ms",
        toml: include_str!("presets/leafspine-4x4.toml"),
    },
    Preset {
        name: "reverie-leafspine",
        summary: "256 hosts on 16 leaves and 4 spines at 25 Gbit/s, links of 2 us, 2.56 MB of buffer: TCP web \
                  search in a lossy priority, RDMA in-cast of 2 MB in a lossless one (Reverie §4.1)",
        toml: include_str!("presets/reverie-leafspine.toml"),
    },
    Preset {
        name: "reverie-4x4",
        summary: "the same traffic on 16 hosts on 4 leaves and 2 spines with 768 kB of buffer, many \
                  small in-casts",
        toml: include_str!("presets/reverie-4x4.toml"),
    },
];
