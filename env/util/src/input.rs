//! Handling of external input: bounded reading, and excerpts of it in messages.
//!
//! A file can be a device without an end, a sparse file of gigabytes or somebody's film. Every reader
//! states how much its format can sensibly need and reads no more than that. A message shows at most
//! one line of the input, without control characters.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of characters of external text that a message shows.
const EXCERPT: usize = 80;

/// Maximum number of characters of a library's message about external text.
const MESSAGE: usize = 240;

/// Maximum size of one record of a CSV file, with the comments and empty lines before it, bytes.
pub const MAX_RECORD: u64 = 1 << 20;

/// Maximum size of a configuration or scenario in TOML, bytes.
pub const MAX_TOML: u64 = 1 << 20;

/// Maximum size of a JSON file, such as a manifest, a rule or tuned parameters, bytes.
pub const MAX_JSON: u64 = 16 << 20;

/// Maximum size of a table of numbers that is read into memory whole, such as `metrics.csv` or an array of
/// observations, bytes.
pub const MAX_TABLE: u64 = 256 << 20;

/// Maximum size of a network's weights or of a forest, bytes.
pub const MAX_WEIGHTS: u64 = 256 << 20;

/// Returns at most 80 characters of `text` on one line. Control characters, line ends and characters that
/// cannot be displayed are escaped. `…` marks the cut.
pub fn excerpt(text: &str) -> String {
    let mut short = String::new();
    let mut length = 0;
    for character in text.chars() {
        let mut escaped = String::new();
        push_visible(&mut escaped, character);
        length += escaped.chars().count();
        if length > EXCERPT {
            short.push('…');
            break;
        }
        short.push_str(&escaped);
    }
    short
}

/// Returns a library's message about external text, such as a parser's, on one line of at most 240
/// characters. A longer message is cut in the middle, because it quotes the text there. Its ends say what
/// is wrong and where.
pub fn condensed(text: impl Display) -> String {
    line(&text.to_string(), MESSAGE)
}

/// Returns `text` on one line of at most `most` characters; `…` replaces the middle of a longer text. Control
/// characters are escaped.
pub fn line(text: &str, most: usize) -> String {
    // An escape has at most ten characters, and the text between the two ends is not read twice.
    let (head, tail) = (most - most / 2, most / 2);
    let mut whole = String::new();
    let mut length = 0;
    for character in text.trim_end().chars() {
        push_visible(&mut whole, character);
        length += 1;
        if length > most {
            break;
        }
    }
    if whole.chars().count() <= most {
        return whole;
    }
    let start: String = whole.chars().take(head).collect();
    let mut end: Vec<String> = Vec::new();
    let mut length = 0;
    for character in text.trim_end().chars().rev() {
        let mut visible = String::new();
        push_visible(&mut visible, character);
        length += visible.chars().count();
        if length > tail {
            break;
        }
        end.push(visible);
    }
    end.reverse();
    format!("{start}…{}", end.concat())
}

/// Returns `text` with its line ends. All other control characters, and characters that cannot be displayed,
/// are escaped.
pub fn lines(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // The non-breaking space before a unit, as in `5 %`, can be displayed.
            '\n' | '\u{a0}' => visible.push(character),
            _ => push_visible(&mut visible, character),
        }
    }
    visible
}

/// Like [`lines`], on one line: line ends are escaped too.
pub fn visible(text: &str) -> String {
    lines(text).replace('\n', "\\n")
}

/// Adds the character, or its escape if it cannot be displayed.
fn push_visible(text: &mut String, character: char) {
    match character {
        '\'' | '"' | '\\' => text.push(character),
        _ => text.extend(character.escape_debug()),
    }
}

/// Returns the text `; did you mean \`x\`?` for the known name nearest to `given`, or an empty text if none
/// is near or `given` is itself a known name. Ignores case and blanks around the name when it compares.
///
/// Takes at most 80 characters of `given` into account, so its time is bounded.
pub fn suggestion<S: AsRef<str>>(given: &str, known: &[S]) -> String {
    if given.chars().nth(EXCERPT).is_some() || known.iter().any(|name| name.as_ref() == given) {
        return String::new();
    }
    let plain = given.trim().to_lowercase();
    known
        .iter()
        .map(AsRef::as_ref)
        .map(|name| {
            (
                strsim::damerau_levenshtein(&plain, &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= name.len().max(plain.len()).div_ceil(2))
        .min()
        .map(|(_, name)| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Returns the bytes of a file that has at most `limit`. Reads at most one byte more than `limit`.
///
/// # Errors
/// Those of the file system; [`io::ErrorKind::FileTooLarge`] with the limit in its message if the
/// file is longer.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    // A file that states its length can be refused without reading it. Devices state none.
    if file.metadata()?.len() > limit {
        return Err(too_large("the file", limit));
    }
    read_from(file, limit)
}

/// Like [`read`], but returns text.
///
/// # Errors
/// Those of [`read`]; [`io::ErrorKind::InvalidData`] if the bytes are not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a text in UTF-8"))
}

/// Like [`read`], from a reader.
///
/// # Errors
/// Those of [`read`].
pub fn read_from(reader: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large("the file", limit));
    }
    Ok(bytes)
}

/// Copies a regular file that has at most `limit` bytes, without reading it into memory. A device or a pipe,
/// which may have no end, is refused before anything is read, and so is a file that states a greater length.
///
/// # Errors
/// Those of [`read`] and of `out`; [`io::ErrorKind::InvalidInput`] if the path is no regular file.
pub fn copy(path: &Path, out: &mut impl io::Write, limit: u64) -> io::Result<()> {
    // Opening a pipe would wait for its writer.
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    if about.len() > limit {
        return Err(too_large("the file", limit));
    }
    let mut reader = File::open(path)?.take(limit.saturating_add(1));
    match io::copy(&mut reader, out)? {
        length if length > limit => Err(too_large("the file", limit)),
        _ => Ok(()),
    }
}

fn too_large(what: impl Display, limit: u64) -> io::Error {
    let limit = match limit {
        limit if limit % (1 << 20) == 0 => format!("{} MiB", limit >> 20),
        limit if limit % (1 << 10) == 0 => format!("{} KiB", limit >> 10),
        limit => format!("{limit} bytes"),
    };
    let message = format!("{what} is longer than {limit}, the most that is read");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// A reader of records that have at most [`MAX_RECORD`] bytes each. Ends with an error in the first
/// longer one. So a file without line ends, or with a quote that is never closed, is not read into
/// memory whole.
#[derive(Debug)]
pub struct Records<R> {
    inner: R,
    /// Bytes read since the last call of [`Records::done`].
    length: u64,
}

impl<R: Read> Records<R> {
    /// Bounds the records of `inner`.
    pub fn new(inner: R) -> Self {
        Records { inner, length: 0 }
    }

    /// Marks a record as complete. Bytes that were read beyond its end are not counted.
    pub fn done(&mut self) {
        self.length = 0;
    }
}

impl<R: Read> Read for Records<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.length > MAX_RECORD {
            return Err(too_large("a record", MAX_RECORD));
        }
        let read = self.inner.read(buffer)?;
        self.length += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_nothing_that_controls_a_terminal() {
        assert_eq!(lines("5\u{a0}% ÷ é\n\"a\\'\n"), "5\u{a0}% ÷ é\n\"a\\'\n");
        assert_eq!(
            lines("\u{1b}[2J\r\t\u{9b}\u{7f}\u{202e}"),
            "\\u{1b}[2J\\r\\t\\u{9b}\\u{7f}\\u{202e}"
        );
    }

    #[test]
    fn an_excerpt_is_one_short_line_of_what_can_be_seen() {
        assert_eq!(excerpt("dt:alpha=8"), "dt:alpha=8");
        assert_eq!(excerpt("it's \"so\""), "it's \"so\"");
        assert_eq!(excerpt("a\u{1b}[31mb\nc\0"), "a\\u{1b}[31mb\\nc\\0");
        let long = excerpt(&"x".repeat(1_000_000));
        assert_eq!(long.chars().count(), EXCERPT + 1);
        assert!(long.ends_with("x…"));
        assert!(excerpt(&"\u{7}".repeat(200)).chars().count() <= EXCERPT + 1);
        assert_eq!(excerpt(&"é".repeat(EXCERPT)), "é".repeat(EXCERPT));
    }

    #[test]
    fn a_message_keeps_its_ends_on_one_line() {
        assert_eq!(condensed("unknown\nfield"), "unknown\\nfield");
        let long = format!("invalid type: \"{}\" at line 7", "x\u{1b}".repeat(500_000));
        let short = condensed(long);
        assert_eq!(
            short.chars().count().cmp(&(MESSAGE + 1)),
            std::cmp::Ordering::Less,
            "{short}"
        );
        assert!(short.starts_with("invalid type: \"x\\u{1b}") && short.ends_with(" at line 7"));
        assert!(!short.contains('\u{1b}') && short.contains('…'));
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abc…efg");
    }

    #[test]
    fn the_nearest_name_is_suggested_and_never_the_name_itself() {
        let known = ["newreno", "cubic"];
        assert_eq!(suggestion("newrino", &known), "; did you mean `newreno`?");
        assert_eq!(suggestion("cubic", &known), "");
        for given in ["CUBIC", " cubic", "cubic\n", "Cubic "] {
            assert_eq!(
                suggestion(given, &known),
                "; did you mean `cubic`?",
                "{given}"
            );
        }
        assert_eq!(suggestion("nothing like it", &known), "");
        assert_eq!(suggestion(&"cubic".repeat(100_000), &known), "");
    }

    #[test]
    fn a_file_up_to_its_limit_is_read_and_a_longer_one_refused() {
        assert_eq!(read_from(&[7; 1024][..], 1024).unwrap().len(), 1024);
        let error = read_from(&[7; 1025][..], 1024).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(
            error.to_string(),
            "the file is longer than 1 KiB, the most that is read"
        );
        assert!(read_from(io::repeat(0), MAX_TOML).is_err());
    }

    #[test]
    fn a_record_without_end_is_refused() {
        let record = [b'a'; 1 << 19];
        let mut records = Records::new(io::repeat(b'a'));
        for _ in 0..100 {
            let mut buffer = record;
            records.read_exact(&mut buffer).unwrap();
            records.done();
        }
        let error = io::copy(&mut records, &mut io::sink()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a record is longer than 1 MiB, the most that is read"
        );
    }
}
