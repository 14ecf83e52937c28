//! The ONNX bytes, read by the test's own protobuf reader.

use std::collections::{BTreeMap, HashSet};

use bufgym_export::{Layer, Network, onnx};
use bufgym_models::checkpoint::Manifest;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

/// A field: its number and its value.
enum Field<'a> {
    Integer(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        fields.push(match key & 7 {
            0 => Field::Integer(key >> 3, value),
            2 => {
                let (value, rest) = bytes.split_at(value as usize);
                bytes = rest;
                Field::Bytes(key >> 3, value)
            }
            kind => panic!("kind {kind}"),
        });
    }
    fields
}

/// The values of a field of bytes.
fn all<'a>(message: &'a [u8], number: u64) -> Vec<&'a [u8]> {
    let of = |field: Field<'a>| match field {
        Field::Bytes(found, value) if found == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn texts(message: &[u8], number: u64) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    all(message, number).into_iter().map(text).collect()
}

fn integers(message: &[u8], number: u64) -> Vec<u64> {
    let of = |field: Field<'_>| match field {
        Field::Integer(found, value) if found == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

/// Shape and bits of every constant of floats.
fn constants(graph: &[u8]) -> BTreeMap<String, (Vec<u64>, Vec<u32>)> {
    let mut constants = BTreeMap::new();
    for tensor in all(graph, 5) {
        let bits = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let values = all(tensor, 9)[0]
            .as_chunks::<4>()
            .0
            .iter()
            .map(bits)
            .collect();
        if integers(tensor, 2) == [1] {
            let name = texts(tensor, 8).remove(0);
            assert!(
                constants
                    .insert(name, (integers(tensor, 1), values))
                    .is_none()
            );
        }
    }
    constants
}

fn graphs() -> impl Iterator<Item = (Network, Vec<u8>)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
    (0..24).map(move |number| {
        let network = random::network(number, &mut rng);
        let network = match number % 3 {
            1 => random::with_early(network, &mut rng),
            _ => network,
        };
        let manifest = Manifest::new("random", "", "none", 5);
        let bytes = onnx::encode(&network, &manifest).unwrap();
        let model = all(&bytes, 7)[0].to_vec();
        (network, model)
    })
}

#[test]
fn weights_are_the_same_bit_for_bit() {
    for (network, graph) in graphs() {
        let constants = constants(&graph);
        let mut means = 0;
        let mut seen = HashSet::new();
        for layer in &network.layers {
            match layer {
                Layer::AppendMean => means += 1,
                Layer::Convolution(conv) => {
                    let (shape, bits) = &constants[&format!("{}.weight", conv.name)];
                    let channels = conv.bias.len() as u64;
                    assert_eq!(*shape, [channels, 1, 1, conv.taps as u64]);
                    assert!(
                        bits.iter()
                            .copied()
                            .eq(conv.weight.iter().map(|w| w.to_bits()))
                    );
                }
                Layer::Dense(dense) => {
                    // Equal names get numbers, and sums of weights are rounded: not bit for bit.
                    if !seen.insert(&dense.name) || means > 1 {
                        means = 0;
                        continue;
                    }
                    let own = dense.inputs >> means;
                    let bits = |name: &str| &constants[&format!("{}.{name}", dense.name)].1;
                    for (output, row) in dense.weight.chunks(dense.inputs).enumerate() {
                        for (input, weight) in row.iter().enumerate() {
                            let part = if input < own {
                                "weight"
                            } else {
                                "weight_of_mean"
                            };
                            let place = (input % own) * dense.outputs + output;
                            assert_eq!(bits(part)[place], weight.to_bits());
                        }
                    }
                    assert!(
                        bits("bias")
                            .iter()
                            .copied()
                            .eq(dense.bias.iter().map(|b| b.to_bits()))
                    );
                    means = 0;
                }
            }
        }
    }
}

#[test]
fn nodes_have_names_of_their_own_and_inputs_that_exist() {
    for (network, graph) in graphs() {
        let mut known: HashSet<String> = HashSet::from(["observation".to_owned()]);
        known.extend(
            all(&graph, 5)
                .iter()
                .map(|tensor| texts(tensor, 8).remove(0)),
        );
        let mut names = HashSet::new();
        for node in all(&graph, 1) {
            for input in texts(node, 1) {
                assert!(known.contains(&input), "{input}");
            }
            for output in texts(node, 2) {
                assert!(known.insert(output));
            }
            assert!(names.insert(texts(node, 3)));
        }
        let outputs: Vec<String> = all(&graph, 12)
            .into_iter()
            .map(|output| texts(output, 1).remove(0))
            .collect();
        let expected = ["action", "level", "early_action", "early_level"];
        assert_eq!(outputs, expected[..2 * network.outputs()]);
        assert!(outputs.iter().all(|output| known.contains(output)));
        let operators: Vec<String> = all(&graph, 1)
            .into_iter()
            .flat_map(|node| texts(node, 4))
            .collect();
        let normalised = network
            .features
            .iter()
            .any(|feature| feature.deviation != 1.0);
        assert_eq!(
            operators.iter().any(|operator| operator == "Div"),
            normalised
        );
    }
}

#[test]
fn the_file_says_what_it_is() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let network = random::network(9, &mut rng);
    let mut manifest = Manifest::new("some-scenario", "", "fct", 5);
    manifest.weights_sha256 = "abc".to_owned();
    let model = onnx::encode(&network, &manifest).unwrap();
    assert_eq!(integers(&model, 1), [onnx::IR_VERSION as u64]);
    assert_eq!(integers(all(&model, 8)[0], 2), [onnx::OPSET as u64]);
    let facts: BTreeMap<String, String> = all(&model, 14)
        .into_iter()
        .map(|entry| (texts(entry, 1).remove(0), texts(entry, 2).remove(0)))
        .collect();
    assert_eq!(facts["weights_sha256"], "abc");
    assert_eq!(facts["scenario"], "some-scenario");
    assert_eq!([&facts["low_level"], &facts["actions"]], ["dt", "alpha"]);
    assert_eq!(facts["alphas"].split(", ").count(), network.actions.levels);
    let features: serde_json::Value = serde_json::from_str(&facts["features"]).unwrap();
    assert_eq!(
        features.as_array().map(Vec::len),
        Some(network.features.len())
    );
    assert!(!facts.contains_key("early_gaps"));
    let network = random::with_early(network, &mut rng);
    let model = onnx::encode(&network, &manifest).unwrap();
    let fact = |key: &str| {
        let entries = all(&model, 14).into_iter();
        let mut entries = entries.filter(|entry| texts(entry, 1) == [key]);
        entries.next().map(|entry| texts(entry, 2).remove(0))
    };
    assert_eq!(fact("actions").as_deref(), Some("alpha,early"));
    let gaps = fact("early_gaps");
    let gaps: Option<Vec<u32>> =
        gaps.map(|text| text.split(", ").map(|gap| gap.parse().unwrap()).collect());
    assert_eq!(gaps, network.gaps);
    let bytes: Option<u64> = fact("early_gap_bytes").map(|text| text.parse().unwrap());
    assert_eq!(bytes, network.gap_bytes);
}
