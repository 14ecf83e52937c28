//! The readers: valid inputs of each, the reading function, and the use of the result.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::str;

use bufgym::agents::replay::{Frame, Replay, ReplayShape, Transition};
use bufgym::agents::{PortSac, PortsConfig, SacConfig};
use bufgym::env::control::{
    ActionSet, Controller as _, FEATURES, LowLevelPolicy, Objective, PRIVILEGED,
};
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::Stored;
use bufgym::export::Source;
use bufgym::export::golden::Recording;
use bufgym::export::int8::{IntegerFile, IntegerLayer};
use bufgym::export::{Network, onnx};
use bufgym::models::checkpoint::{self, Manifest};
use bufgym::models::files::sha256;
use bufgym::models::linear::LinearFile;
use bufgym::models::windows::OBSERVATION;
use bufgym::models::{ActorWeights, cpu, npy};
use bufgym::onnx::{OnnxNetwork, Settings};
use bufgym::sim::network::OneSwitch;
use bufgym::sim::scenario::{Scenario, SizeDistribution};
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::switch::policy::{Forest, ForestModel, catalogue};
use bufgym::sim::traffic::{Capture, CaptureOptions, ListOptions, Trace, generate};
use bufgym::train::TrainConfig;
use bufgym::util::rng;
use rand::RngExt as _;

/// Number of readers.
pub const COUNT: usize = 21;

const MIB: u64 = 1 << 20;

/// Reads an input and uses the result; or returns the message for the user.
type Read = dyn Fn(&[u8]) -> Result<(), String>;

/// A reader of foreign input.
pub struct Reader {
    pub name: &'static str,
    /// Inputs that are read without an error.
    pub seeds: Vec<Vec<u8>>,
    /// Largest number of bytes that may be allocated at once for an input of up to 1 MiB.
    pub memory: u64,
    pub read: Box<Read>,
}

/// Returns the reader with this name.
pub fn by_name(name: &str) -> Option<Reader> {
    let all = [
        flow_list,
        peer_list,
        size_distribution,
        capture,
        tunnels,
        scenario,
        setting,
        train_config,
        manifest,
        weights,
        npy,
        forest,
        linear_rule,
        integer_network,
        onnx_network,
        slotted_arrivals,
        tuned_parameters,
        policy,
        objective,
        replay,
        learner,
    ];
    all.into_iter()
        .map(|reader| reader())
        .find(|reader| reader.name == name)
}

/// Formats the error like the program: with its causes, on one line.
fn said(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Errors that repeat their cause in their own message name it once.
        if !text.contains(&cause.to_string()) {
            text = format!("{text}: {cause}");
        }
        source = cause.source();
    }
    text
}

fn text(input: &[u8]) -> Result<&str, String> {
    str::from_utf8(input).map_err(|error| error.to_string())
}

/// Writes the input into a file, and reads that.
fn through_file<T>(input: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: tempfile::TempDir = match Path::new("/dev/shm").is_dir() {
            true => tempfile::tempdir_in("/dev/shm"),
            false => tempfile::tempdir(),
        }
        .expect("a temporary folder");
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("input");
        fs::write(&path, input).expect("a temporary file");
        read(&path)
    })
}

fn small_scenario() -> Scenario {
    let mut scenario = Scenario::default();
    for setting in [
        "ports=4",
        "active_ports=1..4",
        "incast_degree=1..3",
        "flows=10..20",
    ] {
        scenario.set(setting).expect("a setting");
    }
    scenario
}

fn random_values(count: usize) -> Vec<f32> {
    let mut random = rng::stream(1, "values", 0);
    (0..count).map(|_| random.random::<f32>()).collect()
}

/// Returns observations `[rows, 8, 5]`: features from 0 to 1, the last action from -1 to 1.
fn random_observations(rows: usize) -> Vec<f32> {
    const LAST_ACTION: usize = 3;
    let mut values = random_values(rows * OBSERVATION);
    for step in values.chunks_exact_mut(FEATURES) {
        step[LAST_ACTION] = 2.0 * step[LAST_ACTION] - 1.0;
    }
    values
}

fn random_weights() -> ActorWeights {
    ActorWeights::random(&mut rng::stream(1, "weights", 0))
}

fn some_manifest() -> Manifest {
    let scenario = small_scenario();
    Manifest::new(&scenario.name, &scenario.to_toml(), "fct", 1)
}

/// Returns the files of a checkpoint.
fn checkpoint_files() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    checkpoint::save_actor(folder.path(), &random_weights(), &some_manifest())
        .expect("it can be saved");
    let read = |name| fs::read(folder.path().join(name)).expect("it was saved");
    (read("manifest.json"), read("actor.safetensors"))
}

pub fn flow_list() -> Reader {
    let mut generated = Vec::new();
    let trace = generate(&small_scenario(), 1);
    trace.to_writer(&mut generated).expect("memory takes it");
    Reader {
        name: "flow_list",
        seeds: vec![
            generated,
            b"id,src,dst,start_ns,size_bytes\n1,0,1,0,1000\n2,1,2,5,1\n".to_vec(),
            b"# made by hand\r\n\"id\", src ,dst,start_ns,size_bytes,kind,extra\r\n7,0,1,100,1460,web,x\r\n".to_vec(),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let trace = Trace::from_reader(input, "flows.csv").map_err(said)?;
            trace.validate(16).map_err(said)
        }),
    }
}

/// Reads lists of other simulators; the content determines the format.
pub fn peer_list() -> Reader {
    Reader {
        name: "peer_list",
        seeds: vec![
            b"3\n1 0 3 100 200000 2\n2 0 3 100 200000 2.0\n3 0 3 100 50000 2.0005\n".to_vec(),
            b"\n1\r\n 15\t0 0 4791 1 5e-06\r\n".to_vec(),
            b"Nodes 4\nConnections 2\n1->0 start 0 size 200000\n2->0 size 7 start 500000000\n"
                .to_vec(),
            b"# a comment\nNodes 16\nConnections 2\nTriggers 0\nFailures 0\n\
              1->0 id 3 start 0 size 2 prio 1\n3->2 id 4 start 1499.5 size 2 msg 9\n"
                .to_vec(),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let trace = Trace::list_from_reader(input, "list", &ListOptions::default());
            let trace = trace.map_err(said)?;
            let mut written = Vec::new();
            trace.to_writer(&mut written).expect("memory takes it");
            let again = Trace::from_reader(written.as_slice(), "again").map_err(said)?;
            assert_eq!(again.flows, trace.flows);
            trace.validate(16).map_err(said)
        }),
    }
}

pub fn size_distribution() -> Reader {
    Reader {
        name: "size_distribution",
        seeds: vec![
            b"0 0\n1000 0\n10000 50\n1000000 100\n".to_vec(),
            b"bytes,cdf\n0,0\n10000,0.15\n30000000,1\n".to_vec(),
            b"# share\r\n1\t0\r\n1\t0.25\r\n9000\t0.25\r\n1000000000000\t1.0\r\n".to_vec(),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let sizes = SizeDistribution::from_text(text(input)?, "cdf.txt").map_err(said)?;
            assert!(sizes.mean() > 0.0 && sizes.mean().is_finite());
            let samples = [0.0, 0.1, 0.5, 0.999].map(|u| sizes.sample(u));
            assert!(samples.is_sorted() && samples[0] >= 1, "{samples:?}");
            let mut scenario = small_scenario();
            scenario.set(&format!("workload={sizes}")).map_err(said)?;
            let again = Scenario::from_toml_str(&scenario.to_toml(), "again.toml");
            assert_eq!(
                again.map_err(said)?.traffic.workload,
                scenario.traffic.workload
            );
            scenario.validate().map_err(said)?;
            generate(&scenario, 1).validate(4).map_err(said)
        }),
    }
}

/// Builds an IPv4 packet with a TCP segment.
fn segment(src: u8, dst: u8, seq: u32, payload: u16) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    bytes.extend([0x10, 0, 0x20, 0]);
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 5 << 4, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.resize(40 + usize::from(payload), 0);
    bytes
}

/// Builds an IPv4 packet of a protocol between the ends of a tunnel.
fn outside(protocol: u8, parts: &[&[u8]]) -> Vec<u8> {
    let payload = parts.concat();
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 7, 0, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    bytes.extend(payload);
    bytes
}

/// Builds an Ethernet frame.
fn ethernet(kind: u16, parts: &[&[u8]]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), &parts.concat()].concat()
}

/// Returns packets in every supported tunnel.
fn tunnelled() -> Vec<Vec<u8>> {
    let ip = segment(1, 2, 0, 200);
    let frame = ethernet(0x0800, &[&ip]);
    let udp = |port: u16, header: &[u8]| {
        let length = (8 + header.len() + frame.len()) as u16;
        let start = [
            &[0xc0, 0][..],
            &port.to_be_bytes(),
            &length.to_be_bytes(),
            &[0, 0],
        ]
        .concat();
        outside(17, &[&start, header, &frame])
    };
    let second = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 1, 0, 0, 0, 2];
    let third = [
        0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 5, 5, 5, 5, 5, 5,
        5, 5,
    ];
    let packets = [
        udp(4_789, &[8, 0, 0, 0, 0, 0, 42, 0]),
        udp(8_472, &[8, 0, 0, 0, 0, 0, 42, 0]),
        udp(6_081, &[1, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 3, 0]),
        outside(
            47,
            &[&[0xb0, 0, 8, 0, 1, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &ip],
        ),
        outside(47, &[&second, &frame]),
        outside(47, &[&third, &frame]),
        outside(4, &[&ip]),
    ];
    let mut frames: Vec<_> = packets.iter().map(|ip| ethernet(0x0800, &[ip])).collect();
    let length = (ip.len() as u16 + 2).to_be_bytes();
    frames.push(ethernet(0x8847, &[&[0, 1, 0x10, 64, 0, 2, 0x11, 64], &ip]));
    frames.push(ethernet(0x8847, &[&[0, 2, 0x11, 64, 0, 0, 0, 1], &frame]));
    frames.push(ethernet(
        0x8864,
        &[&[0x11, 0, 0, 9], &length, &[0, 0x21], &ip],
    ));
    frames.push(ethernet(0x8100, &[&[0, 5, 0x08, 0], &packets[0]]));
    frames
}

/// Returns packets of a few connections.
fn packets() -> Vec<Vec<u8>> {
    (0..12)
        .map(|k| segment(1 + k % 3, 4, u32::from(k / 3) * 200, 200))
        .collect()
}

/// Builds a pcap file (draft-ietf-opsawg-pcap) of raw IP packets.
fn pcap() -> Vec<u8> {
    pcap_of(101, packets())
}

/// Builds a pcap file of packets of a link type.
fn pcap_of(link: u8, packets: Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::from(0xa1b2_c3d4_u32.to_le_bytes());
    bytes.extend([
        2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, link, 0, 0, 0,
    ]);
    for (time, packet) in (0_u32..).zip(packets) {
        let length = packet.len() as u32;
        for value in [1_700_000_000, time * 1_000, length, length] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

/// Builds a pcapng file (draft-ietf-opsawg-pcapng) of raw IP packets.
fn pcapng() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len() as u32;
        for part in [
            &kind.to_le_bytes()[..],
            &length.to_le_bytes(),
            body,
            &length.to_le_bytes(),
        ] {
            bytes.extend(part);
        }
    };
    let section = [
        &0x1a2b_3c4d_u32.to_le_bytes()[..],
        &[1, 0, 0, 0],
        &[0xff; 8],
    ]
    .concat();
    block(0x0a0d_0d0a, &section);
    block(1, &[101, 0, 0, 0, 0, 0, 4, 0]);
    for (time, packet) in (0_u32..).zip(packets()) {
        let length = packet.len() as u32;
        let mut body = Vec::new();
        for value in [0, 0, time * 1_000, length, length] {
            body.extend(value.to_le_bytes());
        }
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        // Every third block is an older Packet Block, whose interface and number of lost packets are the
        // first word of the newer one.
        block(if time % 3 == 0 { 2 } else { 6 }, &body);
    }
    bytes
}

/// Reads a capture with these options, and checks the result.
fn read_capture(input: &[u8], options: &CaptureOptions) -> Result<(), String> {
    let capture = Capture::from_reader(Cursor::new(input), "capture.pcap", options);
    let capture = capture.map_err(said)?;
    assert!(capture.skipped.total() + capture.copies < capture.packets);
    let trace = capture.trace.validate(capture.ports);
    trace.map_err(|error| panic!("a capture gave a bad trace: {error}"))
}

pub fn capture() -> Reader {
    Reader {
        name: "capture",
        seeds: vec![pcap(), pcapng()],
        memory: 64 * MIB,
        read: Box::new(|input| read_capture(input, &CaptureOptions::default())),
    }
}

/// Reads captures of tunnels, some of them truncated, on both sides of the tunnels.
pub fn tunnels() -> Reader {
    Reader {
        name: "tunnels",
        seeds: vec![pcap_of(1, tunnelled())],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let options = CaptureOptions {
                truncated: true,
                ..CaptureOptions::default()
            };
            let outer = CaptureOptions {
                outer: true,
                ..options
            };
            let _ = read_capture(input, &outer);
            read_capture(input, &options)
        }),
    }
}

pub fn scenario() -> Reader {
    let presets = Scenario::presets()
        .iter()
        .map(|preset| preset.scenario().to_toml().into_bytes());
    let by_hand =
        b"base = \"ndt-16x1g\"\nports = 8\nactive_ports = \"1..8\"\nincast_degree = 3\n".to_vec();
    Reader {
        name: "scenario",
        seeds: presets.chain([by_hand]).collect(),
        memory: 64 * MIB,
        read: Box::new(|input| {
            let scenario = Scenario::from_toml_str(text(input)?, "mine.toml").map_err(said)?;
            let again = Scenario::from_toml_str(&scenario.to_toml(), "mine.toml");
            assert_eq!(again.expect("what we wrote"), scenario);
            Ok(())
        }),
    }
}

pub fn setting() -> Reader {
    let toml = Scenario::default().to_toml();
    let settings = toml.lines().map(|line| {
        let assignment = line.split(" #").next().unwrap_or_default();
        assignment
            .replace(" = ", "=")
            .replace('"', "")
            .trim()
            .as_bytes()
            .to_vec()
    });
    Reader {
        name: "setting",
        seeds: settings.collect(),
        memory: 64 * MIB,
        read: Box::new(|input| {
            let mut scenario = Scenario::default();
            scenario.set(text(input)?).map_err(said)?;
            scenario.validate().map_err(said)
        }),
    }
}

pub fn train_config() -> Reader {
    Reader {
        name: "train_config",
        seeds: vec![
            TrainConfig::default().to_toml().into_bytes(),
            include_bytes!("../../.ci/short-training.toml").to_vec(),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let config =
                TrainConfig::from_toml_str(text(input)?, Path::new("train.toml")).map_err(said)?;
            config.validate().map_err(said)
        }),
    }
}

pub fn manifest() -> Reader {
    let (manifest, weights) = checkpoint_files();
    Reader {
        name: "manifest",
        seeds: vec![manifest],
        memory: 64 * MIB,
        read: Box::new(move |input| {
            let (_, manifest) =
                checkpoint::decode_actor(input, &weights, Path::new("checkpoint")).map_err(said)?;
            let scenario = Scenario::from_toml_str(&manifest.scenario_toml, "scenario_toml");
            scenario.map(drop).map_err(said)
        }),
    }
}

/// Reads weights. The manifest gets the checksum of the mutated weights, so that their content is examined.
pub fn weights() -> Reader {
    let (manifest, weights) = checkpoint_files();
    let manifest = String::from_utf8(manifest).expect("JSON");
    let original = sha256(&weights);
    Reader {
        name: "weights",
        seeds: vec![weights],
        memory: 64 * MIB,
        read: Box::new(move |input| {
            let manifest = manifest.replace(&original, &sha256(input));
            let read =
                checkpoint::decode_actor(manifest.as_bytes(), input, Path::new("checkpoint"));
            read.map(drop).map_err(said)
        }),
    }
}

pub fn npy() -> Reader {
    Reader {
        name: "npy",
        seeds: vec![
            npy::encode(&[2, 3, 8, 5], &random_values(240)),
            npy::encode(&[4], &random_values(4)),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let array = through_file(input, npy::read).map_err(said)?;
            assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
            Ok(())
        }),
    }
}

pub fn forest() -> Reader {
    let built_in = ForestModel::built_in().expect("it comes with the program");
    Reader {
        name: "forest",
        seeds: vec![built_in.encode().into_bytes()],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let model = ForestModel::decode(text(input)?, "forest.json").map_err(said)?;
            let forest = Forest::new(&model.trees, model.threshold).map_err(said)?;
            for value in [0.0, 1.0, -1.0, f32::MAX, f32::NAN] {
                forest.predicts_loss(&[value; 4]);
            }
            Ok(())
        }),
    }
}

pub fn linear_rule() -> Reader {
    Reader {
        name: "linear_rule",
        seeds: vec![include_bytes!("../../checkpoints/linear.json").to_vec()],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let mut file = LinearFile::parse(input, Path::new("rule.json")).map_err(said)?;
            let mut actions = vec![0.0_f32; 3 * file.rule.outputs()];
            file.rule.act(&random_observations(3), 3, &mut actions);
            assert!(
                actions.iter().all(|action| action.abs() <= 1.0),
                "{actions:?}"
            );
            Ok(())
        }),
    }
}

pub fn onnx_network() -> Reader {
    let bytes = |low_level: &str| {
        let manifest = some_manifest().over(low_level.parse().expect("a heuristic"));
        let mut random = rng::stream(1, "weights", 0);
        let weights = ActorWeights::random_for(manifest.action_set(), &mut random);
        let network = Network::from_actor(&weights, &manifest);
        onnx::encode(&network, &manifest).expect("it is a network")
    };
    // The networks of other trainers have as many ports.
    const PORTS: usize = 16;
    Reader {
        name: "onnx_network",
        seeds: vec![bytes("dt"), bytes("dt+early")],
        // The limit is twice the memory that the constants and the values of a network may take.
        memory: 640 * MIB,
        read: Box::new(|input| {
            let settings = Settings::default();
            let network = OnnxNetwork::parse(input, Path::new("net.onnx"), &settings);
            let mut actor = network.map_err(said)?.actor();
            let mut actions = vec![0.0_f32; PORTS * actor.outputs()];
            let observations = random_observations(PORTS);
            actor
                .try_act(&observations, PORTS, &mut actions)
                .map_err(said)?;
            assert!(
                actions.iter().all(|action| action.abs() <= 1.0),
                "{actions:?}"
            );
            Ok(())
        }),
    }
}

pub fn integer_network() -> Reader {
    let text = |low_level: &str| {
        let manifest = some_manifest().over(low_level.parse().expect("a heuristic"));
        let mut random = rng::stream(1, "weights", 0);
        let weights = ActorWeights::random_for(manifest.action_set(), &mut random);
        let recording = Recording {
            ports: 4,
            observations: random_observations(64 * 4),
        };
        let source = Source::new(weights, manifest, recording).expect("it can be rounded");
        source.integer.to_json().into_bytes()
    };
    Reader {
        name: "integer_network",
        seeds: vec![text("dt"), text("dt+early")],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let file = through_file(input, IntegerFile::load).map_err(said)?;
            let network = &file.network;
            assert!(matches!(
                network.layers.last(),
                Some(IntegerLayer::Dense(_))
            ));
            for code in [0, 128, 255] {
                let codes = vec![code; 3 * network.inputs_per_port()];
                let outputs = network.outputs();
                for (place, value) in network.forward(&codes, 3).into_iter().enumerate() {
                    assert!(network.level(place % outputs, value) < 8);
                }
            }
            Ok(())
        }),
    }
}

pub fn slotted_arrivals() -> Reader {
    use bufgym::slotted::{Arrivals, Order, PolicySpec, Switch};
    Reader {
        name: "slotted_arrivals",
        seeds: vec![
            b"slot,port\n0,0\n0,1\n1,1\n7,3\n".to_vec(),
            b"slot,port,work,value\n0,0,1,5\n0,2,1,2\n3,2,1,9\n".to_vec(),
            b"slot,port,work\n0,0,3\n0,1,1\n4,1,2\n".to_vec(),
        ],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let arrivals = Arrivals::from_reader(input, "arrivals.csv", 4).map_err(said)?;
            let switch = Switch::new(4, 16, Order::Fifo).map_err(said)?;
            let run = PolicySpec::LongestQueueDrop.run(&switch, &arrivals, 1, false);
            run.map(drop).map_err(said)
        }),
    }
}

pub fn tuned_parameters() -> Reader {
    Reader {
        name: "tuned_parameters",
        seeds: vec![include_bytes!("../../checkpoints/tuned/ndt-16x1g.json").to_vec()],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let stored = Stored::read(text(input)?, "tuned.json").map_err(said)?;
            let fit = stored
                .fit(&Scenario::default(), "tuned.json")
                .map_err(said)?;
            if fit.is_some() {
                for definition in catalogue() {
                    let policy = stored
                        .policy(Metric::MeanFct, definition.info.name, "tuned.json")
                        .map_err(said)?;
                    policy.map(|policy| simulate(&policy)).transpose()?;
                }
            }
            Ok(())
        }),
    }
}

/// Runs a short simulation under a policy that somebody has written.
fn simulate(policy: &PolicySpec) -> Result<(), String> {
    let scenario = small_scenario();
    let mut simulator = policy
        .simulator::<OneSwitch>(&scenario, &generate(&scenario, 1))
        .map_err(said)?;
    for _ in 0..2_000 {
        simulator.step();
    }
    simulator.check_invariants().map_err(said)
}

pub fn policy() -> Reader {
    let seeds = catalogue().iter().flat_map(|definition| {
        let info = definition.info;
        let given = info
            .parameters
            .iter()
            .filter(|parameter| parameter.default.parse::<f64>().is_ok());
        let given: Vec<_> = given
            .map(|parameter| format!("{}={}", parameter.name, parameter.default))
            .collect();
        [
            info.name.to_owned(),
            format!("{}:{}", info.name, given.join(",")),
        ]
    });
    Reader {
        name: "policy",
        seeds: seeds
            .map(|seed| seed.trim_end_matches(':').as_bytes().to_vec())
            .collect(),
        memory: 64 * MIB,
        read: Box::new(|input| {
            let text = text(input)?;
            // Either parser may refuse the text; the answer of one does not depend on the other's.
            let base: Result<LowLevelPolicy, _> = text.parse();
            let message = base.err().map(said).unwrap_or_default();
            assert!(!message.chars().any(char::is_control), "{message:?}");
            let policy: PolicySpec = text.parse().map_err(said)?;
            simulate(&policy)
        }),
    }
}

pub fn objective() -> Reader {
    let seeds = [
        "fct",
        "loss",
        "fairness",
        "fct=1,loss=0.1",
        "delay=0.5,throughput=2",
    ];
    Reader {
        name: "objective",
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).to_vec(),
        memory: 64 * MIB,
        read: Box::new(|input| {
            let objective: Objective = text(input)?.parse().map_err(said)?;
            let again: Objective = objective.to_string().parse().map_err(said)?;
            assert_eq!(again, objective);
            Ok(())
        }),
    }
}

const STREAMS: usize = 2;
const PORTS: usize = 2;
const REPLAY: ReplayShape = ReplayShape {
    capacity: 64,
    streams: STREAMS,
    ports: PORTS,
    outputs: 1,
    pairs: 2,
};

fn some_replay() -> Replay {
    let (ports, streams) = (PORTS, STREAMS);
    let frame = Frame::newest(
        &random_observations(ports),
        &random_values(ports * PRIVILEGED),
    );
    let mut replay = Replay::new(REPLAY, 1);
    for stream in 0..streams {
        replay.start(stream, &frame);
        for step in 0..20 {
            let terminated = step == 12;
            replay.push(
                stream,
                &Transition {
                    actions: vec![1; ports],
                    raw: vec![0.0; ports],
                    port_rewards: vec![-1.0; ports],
                    discount: 0.99,
                    terminated,
                    truncated: false,
                    next: frame.clone(),
                    reset: terminated.then(|| frame.clone()),
                },
            );
        }
    }
    replay
}

/// Reads a replay buffer. The checksum at the end is corrected, so that the content is examined.
pub fn replay() -> Reader {
    const DIGEST: usize = 32;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("replay.bin");
    some_replay().save(&path).expect("it can be saved");
    let mut seed = fs::read(&path).expect("it was saved");
    seed.truncate(seed.len() - DIGEST);
    Reader {
        name: "replay",
        seeds: vec![seed],
        memory: 64 * MIB,
        read: Box::new(|input| {
            let hexadecimal = sha256(input);
            let digits = hexadecimal.as_bytes().as_chunks::<2>().0.iter();
            let digest = digits.map(|pair| {
                let pair = str::from_utf8(pair).expect("digits");
                u8::from_str_radix(pair, 16).expect("digits")
            });
            let whole: Vec<u8> = input.iter().copied().chain(digest).collect();
            through_file(&whole, |path| Replay::load(path, REPLAY))
                .map(drop)
                .map_err(said)
        }),
    }
}

/// Reads the state of a learner, one file of which is mutated and its checksum corrected.
pub fn learner() -> Reader {
    const STATE: &str = "sac.json";
    const CHECKSUM: &str = "sac.sha256";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sac = PortSac::new(
        SacConfig::default(),
        PortsConfig::default(),
        ActionSet::Alpha,
        1,
        &cpu(),
    )
    .expect("the defaults");
    sac.save(folder.path()).expect("it can be saved");
    let seed = fs::read(folder.path().join(STATE)).expect("it was saved");
    Reader {
        name: "learner",
        seeds: vec![seed],
        memory: 64 * MIB,
        read: Box::new(move |input| {
            fs::write(folder.path().join(STATE), input).expect("a temporary file");
            let checksum = sha256(input);
            fs::write(folder.path().join(CHECKSUM), checksum).expect("a temporary file");
            PortSac::load(folder.path(), &cpu()).map(drop).map_err(said)
        }),
    }
}
