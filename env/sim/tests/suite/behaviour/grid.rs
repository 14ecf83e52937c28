//! Every policy with every queue management, transport and kind of network, in small runs: what the simulator computes,
//! as hashes in `grid.txt`. A change of structure changes none of them. One that corrects a rule says which, and
//! writes the table again with `BLESS=1 cargo test --release -p bufgym-sim grid`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use bufgym_sim::network::{Outcome, Records};
use bufgym_sim::scenario::{Scenario, TransportKind};
use bufgym_sim::switch::{PolicySpec, aqm, policy};
use bufgym_sim::traffic::generate;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng::{Split, trace_seed};

/// Kinds of networks: name, preset and settings.
const NETWORKS: [(&str, &str, &str); 7] = [
    (
        "switch",
        "ndt-16x1g",
        "ports=4 active_ports=2..3 incast_degree=3 flows=20 workload=fb_hadoop load=0.9 buffer_bytes=60000 min_rto_us=2000 ecn=true",
    ),
    (
        "ns-3",
        "ns3-16x1g",
        "ports=4 active_ports=2..3 incast_degree=3 flows=15 workload=fb_hadoop load=0.9 buffer_bytes=60000 min_rto_us=2000 ecn_threshold_bytes=20000",
    ),
    (
        "queues",
        "leafspine-4x4",
        "leaves=1 spines=0 hosts_per_leaf=4 incast_degree=3 active_ports=4 demand=uniform measure_ms=1 buffer_bytes=60000 min_rto_us=1000 query_rate=2000 query_share=1 ecn_threshold_bytes=20000 queues_per_port=3 scheduler=drr flow_priority=random_per_flow queue_alpha=1,2,0.5",
    ),
    (
        "leafspine",
        "leafspine-4x4",
        "leaves=2 hosts_per_leaf=3 spines=1 links_per_pair=2 ecmp=spray incast_degree=3 active_ports=4..6 measure_ms=1 buffer_bytes=60000 min_rto_us=1000 query_rate=2000 query_share=1 ecn_threshold_bytes=20000",
    ),
    (
        "pool",
        "leafspine-4x4",
        "leaves=2 hosts_per_leaf=3 spines=1 spine_pool=with_leaf incast_degree=3 active_ports=4..6 measure_ms=1 buffer_bytes=60000 min_rto_us=1000 query_rate=2000 query_share=1 ecn_threshold_bytes=20000",
    ),
    (
        "lossless",
        "reverie-4x4",
        "leaves=2 hosts_per_leaf=3 spines=1 incast_degree=3 active_ports=4..6 measure_ms=1 query_rate=1000 query_share=0.4 buffer_bytes=200000 ecn_red_kmin_bytes=10000 ecn_red_kmax_bytes=40000",
    ),
    (
        "rdma",
        "reverie-4x4",
        "lossless_priorities=1,3 leaves=2 hosts_per_leaf=3 spines=1 incast_degree=3 active_ports=4..6 measure_ms=1 query_rate=1000 query_share=0.4 buffer_bytes=200000 ecn_red_kmin_bytes=10000 ecn_red_kmax_bytes=40000",
    ),
];

/// Queue management, as it follows the name of a policy.
const MANAGEMENTS: [&str; 12] = [
    "",
    "+random:min_bytes=15000,p=0.05",
    "+red:min_bytes=10000,max_bytes=30000,max_p=0.2",
    "+red:min_bytes=10000,max_bytes=30000,max_p=0.2,action=mark",
    "+step:bytes=15000",
    "+codel:target_us=100,interval_us=500",
    "+codel:target_us=100,interval_us=500,action=mark",
    "+pie:target_us=100,update_us=100,burst_us=0,alpha=100,beta=1000",
    "+pie:target_us=100,update_us=100,burst_us=0,alpha=100,beta=1000,action=mark",
    "+early:min_bytes=10000,gap=8",
    "+early:min_bytes=10000,gap=8,action=mark",
    "+early:min_bytes=10000,gap=8,from=front",
];

/// Rules of senders that are not transports of their own.
const VARIANTS: [&str; 5] = [
    "newreno sack=false",
    "newreno recovery=ns3",
    "cubic recovery=rack late_binding=true",
    "dctcp recovery=ns3 delayed_ack=2",
    "powertcp transport_variant=ns3",
];

/// A hash of words.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    fn outcome(&mut self, outcome: &Outcome) {
        for record in &outcome.records {
            let instants = [record.established, record.finish].map(|at| at.map(Instant::as_ps));
            for ps in instants
                .into_iter()
                .chain([record.base.map(Duration::as_ps)])
            {
                self.word(ps.unwrap_or(u64::MAX));
            }
            self.word(record.timeouts.into());
        }
        let summary = &outcome.summary;
        for count in [
            summary.packets_forwarded,
            summary.drops,
            summary.drops_data,
            summary.dropped_bytes,
            summary.pushed_out,
            summary.marks,
            summary.timeouts,
            summary.max_occupancy_bytes,
            summary.pauses,
            summary.drops_lossless,
            summary.mean_slowdown.to_bits(),
            summary.p99_occupancy.to_bits(),
            summary.simulated_s.to_bits(),
        ] {
            self.word(count);
        }
        for row in &outcome.switches {
            for count in [
                row.packets_forwarded,
                row.drops,
                row.drops_unscheduled,
                row.pushed_out,
                row.marks,
                row.max_occupancy.to_bits(),
                row.uplink_throughput.to_bits(),
            ] {
                self.word(count);
            }
        }
        for row in &outcome.timeline {
            self.word(row.t.as_ps());
            for count in [
                row.queue_bytes,
                row.threshold_bytes,
                row.occupancy_bytes,
                row.alpha.to_bits(),
            ] {
                self.word(count);
            }
        }
        outcome
            .drops
            .iter()
            .for_each(|row| self.word(row.t.as_ps()));
        self.word(outcome.pauses.len() as u64);
    }
}

/// Network and transport, with the rows of [`run`].
type Found = ((usize, usize), Vec<(String, Hash)>);

fn policies() -> Vec<&'static str> {
    let named = policy::catalogue().iter().map(|policy| policy.info.name);
    named.collect()
}

fn transports() -> Vec<&'static str> {
    let named = TransportKind::ALL.iter().map(|kind| kind.name());
    named.chain(VARIANTS).collect()
}

/// Runs everything in one network under one transport. Rows are policies and queue managements with their hashes. A
/// combination that is refused has a hash of its own, a transport that is refused none.
fn run(preset: &str, settings: &str, transport: &str) -> Vec<(String, Hash)> {
    let mut scenario = Scenario::preset(preset).expect("a preset");
    let transport = format!("transport={transport}");
    let settings = settings.split_whitespace().chain(transport.split(' '));
    scenario.set_all(settings).expect("settings that exist");
    let mut rows = Vec::new();
    if scenario.validate().is_err() {
        return rows;
    }
    let trace = generate(&scenario, trace_seed(Split::Test, 1, 0));
    let records = Records {
        timeline: Some(Duration::from_us(100)),
        drops: true,
        ..Records::default()
    };
    for management in MANAGEMENTS {
        for policy in policies() {
            let mut hash = Hash::new();
            let spec: Result<PolicySpec, _> = format!("{policy}{management}").parse();
            let outcome = spec
                .ok()
                .and_then(|spec| spec.run_recording(&scenario, &trace, &records).ok());
            match outcome {
                Some(outcome) => hash.outcome(&outcome),
                None => hash.word(u64::MAX),
            }
            rows.push((policy.to_owned(), hash));
            rows.push((management.to_owned(), hash));
        }
    }
    rows
}

/// A table of hashes: a row for every network with every policy and with every queue management, a column for every
/// transport.
fn table() -> String {
    let transports = transports();
    let jobs: Vec<(usize, usize)> = (0..NETWORKS.len())
        .flat_map(|network| (0..transports.len()).map(move |transport| (network, transport)))
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<Found> = thread::scope(|scope| {
        let share = |first: usize| {
            let mine: Vec<_> = jobs.iter().skip(first).step_by(threads).copied().collect();
            let transports = &transports;
            scope.spawn(move || {
                let done = mine.into_iter().map(|(network, transport)| {
                    let (_, preset, settings) = NETWORKS[network];
                    let rows = run(preset, settings, transports[transport]);
                    ((network, transport), rows)
                });
                done.collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        let results = running
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.flatten().collect()
    });
    let mut cells: BTreeMap<(usize, String), BTreeMap<usize, Hash>> = BTreeMap::new();
    for ((network, transport), rows) in found {
        for (row, hash) in rows {
            let cell = cells.entry((network, row)).or_default();
            let sum = cell.entry(transport).or_insert_with(Hash::new);
            sum.word(hash.0);
        }
    }
    for (number, (network, ..)) in NETWORKS.iter().enumerate() {
        let runs = cells.contains_key(&(number, policies()[0].to_owned()));
        assert!(runs, "every run in {network} is refused");
    }
    let mut text = format!("# {}\n", transports.join(", "));
    for ((network, row), columns) in cells {
        let row = if row.is_empty() { "none" } else { &row };
        write!(text, "{} {row}:", NETWORKS[network].0).expect("writing to memory");
        for transport in 0..transports.len() {
            match columns.get(&transport) {
                Some(hash) => write!(text, " {:08x}", hash.0 >> 32),
                None => write!(text, " -"),
            }
            .expect("writing to memory");
        }
        text.push('\n');
    }
    text
}

#[test]
fn every_queue_management_is_in_the_grid() {
    for discipline in aqm::catalogue() {
        let prefix = format!("+{}:", discipline.info.name);
        let has = MANAGEMENTS.iter().any(|name| name.starts_with(&prefix));
        assert!(has, "nothing of {}", discipline.info.name);
    }
}

#[test]
fn the_grid_is_what_it_was() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/suite/behaviour/grid.txt"
    );
    let found = table();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &found).expect("the table can be written");
    }
    let expected = std::fs::read_to_string(path).expect("the table can be read");
    let changed: Vec<String> = found
        .lines()
        .zip(expected.lines())
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("{expected}\nis now\n{found}"))
        .collect();
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
    assert_eq!(found.lines().count(), expected.lines().count());
}
