//! Mutations of valid inputs: of bytes, of the tokens between separators, and of the numbers in them.

use rand::RngExt as _;
use rand::seq::IndexedRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus as Random;

/// Numbers on which readers often fail.
const NUMBERS: [&str; 32] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "7",
    "255",
    "256",
    "300",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e9",
    "1e18",
    "1e308",
    "-1e308",
    "1e-308",
    "5e-324",
    "1e999",
    "NaN",
    "inf",
    "-inf",
    "0x10",
    "1_000",
    "0.5",
    "1.0000000000000002",
];

/// Texts on which readers and messages often fail.
const TEXTS: [&str; 16] = [
    "",
    "\"",
    "'",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[31m",
    "\u{feff}",
    "\u{202e}",
    "é",
    ",",
    "=",
    "[[",
    "{\"a\":",
    "null",
    "../",
];

/// Longest input, bytes.
const LONGEST: usize = 1 << 20;

/// Mutates seeds.
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    /// Words and numbers of all seeds.
    tokens: Vec<&'a [u8]>,
}

fn is_separator(byte: u8) -> bool {
    matches!(
        byte,
        b',' | b'=' | b':' | b'\n' | b' ' | b'"' | b'[' | b']' | b'{' | b'}' | b'/' | b'(' | b')'
    )
}

/// Returns the places of the tokens of `input` between separators.
fn tokens(input: &[u8]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut start = 0;
    for (place, byte) in input.iter().enumerate() {
        if is_separator(*byte) {
            if place > start {
                places.push((start, place));
            }
            start = place + 1;
        }
    }
    if input.len() > start {
        places.push((start, input.len()));
    }
    places
}

impl<'a> Mutator<'a> {
    pub fn new(seeds: &'a [Vec<u8>]) -> Mutator<'a> {
        let mut found: Vec<&[u8]> = seeds
            .iter()
            .flat_map(|seed| {
                tokens(seed)
                    .into_iter()
                    .map(move |(start, end)| &seed[start..end])
            })
            .filter(|token| token.len() <= 64)
            .collect();
        found.sort_unstable();
        found.dedup();
        Mutator {
            seeds,
            tokens: found,
        }
    }

    /// Returns a seed with one to eight mutations.
    pub fn input(&self, random: &mut Random) -> Vec<u8> {
        let mut input = self.seeds.choose(random).expect("there are seeds").clone();
        // Half of the inputs have a single mutation: those get past the first check.
        let alterations = if random.random() {
            1
        } else {
            random.random_range(2..=8)
        };
        for _ in 0..alterations {
            self.alter(&mut input, random);
            input.truncate(LONGEST);
        }
        input
    }

    fn alter(&self, input: &mut Vec<u8>, random: &mut Random) {
        match random.random_range(0..14) {
            0..=4 => self.replace_token(input, random),
            5 => flip_bit(input, random),
            6 => set_byte(input, random),
            7 => set_integer(input, random),
            8 => insert(
                input,
                TEXTS.choose(random).expect("texts").as_bytes(),
                random,
            ),
            9 => remove_range(input, random),
            10 => repeat_range(input, random),
            11 => input.truncate(random.random_range(0..=input.len())),
            12 => self.splice(input, random),
            _ => swap_lines(input, random),
        }
    }

    /// Replaces a token by a number, a text or a token of a seed.
    fn replace_token(&self, input: &mut Vec<u8>, random: &mut Random) {
        let Some(&(start, end)) = tokens(input).choose(random) else {
            return;
        };
        let new = match random.random_range(0..5) {
            0 => self.tokens.choose(random).copied().unwrap_or(b"x"),
            1 => TEXTS.choose(random).expect("texts").as_bytes(),
            _ => NUMBERS.choose(random).expect("numbers").as_bytes(),
        };
        input.splice(start..end, new.iter().copied());
    }

    /// Joins the start of this input and the end of another.
    fn splice(&self, input: &mut Vec<u8>, random: &mut Random) {
        let other = self.seeds.choose(random).expect("there are seeds");
        input.truncate(random.random_range(0..=input.len()));
        input.extend_from_slice(&other[random.random_range(0..=other.len())..]);
    }
}

fn flip_bit(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        let place = random.random_range(0..input.len());
        input[place] ^= 1 << random.random_range(0..8);
    }
}

fn set_byte(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        let place = random.random_range(0..input.len());
        input[place] = *[0, 1, 0x7f, 0x80, 0xff, b'-', b'9', b'"']
            .choose(random)
            .expect("bytes");
    }
}

/// Writes an extreme integer of two, four or eight bytes, of either byte order.
fn set_integer(input: &mut [u8], random: &mut Random) {
    let width = *[2, 4, 8].choose(random).expect("widths");
    if input.len() < width {
        return;
    }
    let value: u64 = *[
        0,
        1,
        0x7f,
        0xff,
        0x7fff,
        0xffff,
        0x7fff_ffff,
        0xffff_ffff,
        u64::MAX >> 1,
        u64::MAX,
    ]
    .choose(random)
    .expect("values");
    let place = random.random_range(0..=input.len() - width);
    let mut bytes = value.to_le_bytes();
    if random.random() {
        bytes[..width].reverse();
    }
    input[place..place + width].copy_from_slice(&bytes[..width]);
}

fn insert(input: &mut Vec<u8>, text: &[u8], random: &mut Random) {
    let place = random.random_range(0..=input.len());
    input.splice(place..place, text.iter().copied());
}

/// Returns a place and a length, mostly short.
fn range(input: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = random.random_range(0..=input.len());
    let most = (input.len() - start).min(1 << random.random_range(0..12));
    start..start + random.random_range(0..=most)
}

fn remove_range(input: &mut Vec<u8>, random: &mut Random) {
    let range = range(input, random);
    input.drain(range);
}

fn repeat_range(input: &mut Vec<u8>, random: &mut Random) {
    let range = range(input, random);
    // The longest input is rare: it takes the most time and is refused for its length.
    let most = if random.random_range(0..200) == 0 {
        16
    } else {
        6
    };
    let times = 1 << random.random_range(0..=most);
    let again: Vec<u8> = input[range.clone()]
        .iter()
        .copied()
        .cycle()
        .take(range.len() * times)
        .collect();
    input.splice(range.end..range.end, again);
}

fn swap_lines(input: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() > 1 {
        let (a, b) = (
            random.random_range(0..lines.len()),
            random.random_range(0..lines.len()),
        );
        lines.swap(a, b);
        *input = lines.concat();
    }
}
