//! The pages of the documentation agree with the program, with each other, and with their length.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::Sandbox;

/// Largest number of words of each page for readers, tables and code included, signs between blanks not; 5 % more are
/// allowed.
const BUDGETS: [(&str, usize); 37] = [
    ("../README.md", 840),
    ("index.md", 120),
    ("tutorial.md", 760),
    ("tutorial-rule.md", 580),
    ("train.md", 660),
    ("compare.md", 650),
    ("hardware.md", 835),
    ("sonic.md", 825),
    ("dpdk.md", 660),
    ("testbed.md", 825),
    ("cluster.md", 420),
    ("papers.md", 715),
    ("environment.md", 950),
    ("python.md", 710),
    ("policies.md", 1685),
    ("scenarios.md", 830),
    ("transports.md", 1470),
    ("networks.md", 1180),
    ("lossless.md", 995),
    ("flows.md", 455),
    ("exports.md", 1050),
    ("control-loop.md", 990),
    ("limits.md", 680),
    ("slotted.md", 485),
    ("credence.md", 480),
    ("glossary.md", 815),
    ("background.md", 835),
    ("why-front-drop.md", 525),
    ("results.md", 955),
    ("validity.md", 650),
    ("speed.md", 420),
    ("architecture.md", 760),
    ("decisions.md", 1230),
    ("dependencies.md", 600),
    ("../CONTRIBUTING.md", 1250),
    ("../SECURITY.md", 250),
    ("lab/index.md", 150),
];

/// Pages of any length, because programs write them or they are diaries.
const WITHOUT_BUDGET: [&str; 2] = ["cli.md", "SUMMARY.md"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// Returns the pages in `docs` itself, without the lab book.
fn names() -> BTreeSet<String> {
    let entries = fs::read_dir(docs()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

/// Returns every page for readers: those of `docs`, of the lab book, and of the top of the repository.
fn pages() -> Vec<PathBuf> {
    let markdown = |folder: PathBuf| {
        let entries = fs::read_dir(&folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|kind| kind == "md"))
    };
    let folders = [docs(), docs().join("lab"), docs().join("..")];
    let mut pages: Vec<PathBuf> = folders.into_iter().flat_map(markdown).collect();
    pages.sort();
    pages
}

/// Returns the lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns the anchors of a page, as forges and mdBook derive them from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then_some(title.trim())
    });
    let mut all = BTreeSet::new();
    for title in headings {
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let count = seen.entry(slug.clone()).or_default();
        all.insert(match *count {
            0 => slug,
            more => format!("{slug}-{more}"),
        });
        *count += 1;
    }
    all
}

/// Returns the targets of the links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let rest = line.split("](").skip(1);
    rest.filter_map(|rest| rest.split_once([')', ' ']).map(|(target, _)| target))
}

#[test]
fn every_page_keeps_to_its_length() {
    let mut known: BTreeSet<String> = WITHOUT_BUDGET.map(str::to_owned).into();
    for (page, most) in BUDGETS {
        let text = fs::read_to_string(docs().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
        let is_word = |part: &&str| part.contains(char::is_alphanumeric);
        let words = text.split_whitespace().filter(is_word).count();
        assert!(
            words * 100 <= most * 105,
            "{page} has {words} words, {most} are planned"
        );
        known.insert(page.to_owned());
    }
    let without: Vec<String> = names().difference(&known).cloned().collect();
    assert!(
        without.is_empty(),
        "pages without a planned length: {without:?}"
    );
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    for name in names() {
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("({name})")),
            "{name}"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in prose(&text).flat_map(links) {
            if target.contains(':') {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            let known = match file.extension().is_some_and(|kind| kind == "md") {
                _ if !file.exists() => false,
                true if !anchor.is_empty() => {
                    anchors(&fs::read_to_string(&file).unwrap()).contains(anchor)
                }
                _ => true,
            };
            if !known {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Returns the commands of the shell blocks, with continuation lines joined and without comments.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut shell = false;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        if let Some(kind) = line.trim().strip_prefix("```") {
            shell = !shell && kind.starts_with("sh");
            continue;
        }
        let command = line.split(" #").next().unwrap_or_default().trim();
        let program = command
            .strip_prefix("cargo run --release -- ")
            .or_else(|| command.strip_prefix("bufgym "))
            .map(str::to_owned)
            .or_else(|| {
                command
                    .strip_prefix("cargo train")
                    .map(|rest| format!("train{rest}"))
            })
            .or_else(|| {
                command
                    .strip_prefix("cargo evaluate")
                    .map(|rest| format!("eval{rest}"))
            });
        found.extend(program.filter(|_| shell));
    }
    found
}

#[test]
fn every_option_of_a_shell_block_exists() {
    let sandbox = Sandbox::new();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    let readers = pages()
        .into_iter()
        .filter(|page| !page.starts_with(docs().join("lab")) && !page.ends_with("CHANGELOG.md"));
    for page in readers {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let Some(&name) = words.first() else { continue };
            let mut help = help_of(&sandbox, &mut helps, name);
            if let Some(below) = words
                .get(1)
                .filter(|word| word.chars().all(char::is_alphanumeric))
            {
                help += &help_of(&sandbox, &mut helps, &format!("{name} {below}"));
            }
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or_default();
                if !help.contains(option) {
                    wrong.push(format!("{}: {command}: {option}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the help of a command; empty if there is no such command.
fn help_of(sandbox: &Sandbox, known: &mut BTreeMap<String, String>, name: &str) -> String {
    let help = known.entry(name.to_owned()).or_insert_with(|| {
        let run = sandbox.run(&format!("{name} --help"));
        if run.code == Some(0) {
            run.stdout
        } else {
            String::new()
        }
    });
    help.clone()
}

/// The table of README has the numbers of the evaluation that `bufgym eval --suite paper` writes.
#[test]
fn the_numbers_of_readme_are_measured_ones() {
    let readme = fs::read_to_string(docs().join("../README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- eval-table:begin -->").unwrap();
    let (table, _) = rest.split_once("<!-- eval-table:end -->").unwrap();
    let results = fs::read_to_string(docs().join("lab/results.md")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("0.")).collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [ratio, tail] = [cells[2], cells[3]];
        let known = |line: &str| line.contains(&format!("| {ratio} [")) && line.contains(tail);
        assert!(results.lines().any(known), "{row}");
    }
}

/// Returns the folders of shipped policies, with their manifests.
fn shipped() -> Vec<(PathBuf, serde_json::Value)> {
    let checkpoints = docs().join("../checkpoints");
    let entries = fs::read_dir(checkpoints).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let manifest = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("manifest.json")).ok()?;
        Some((folder, serde_json::from_str(&text).unwrap()))
    };
    folders.into_iter().filter_map(manifest).collect()
}

/// Returns the features that a switch needs for the rule below a policy.
fn state_of(low_level: &str) -> Vec<&'static str> {
    let mut state = vec!["a threshold per port, and 114 bytes per port for the observation"];
    if low_level.starts_with("fab") {
        state.push("bytes and time of each active flow (FAB)");
    }
    if low_level.contains("+early") {
        state.push("a counter per port and a time per flow that lost a packet (early drop)");
    }
    if low_level.contains("from=front") {
        state.push(
            "a count of waiting packets per flow and a verdict at the head of queues (front drop)",
        );
    }
    if low_level.starts_with("reverie") || low_level.starts_with("sonic") {
        state.push("thresholds of ingress queues (lossless packets)");
    }
    state
}

/// Returns the card of a shipped policy.
fn card(folder: &Path, manifest: &serde_json::Value) -> String {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let text = |key: &str| manifest[key].as_str().unwrap_or("not recorded").to_owned();
    let count = |key: &str| manifest[key].as_u64().unwrap_or_default();
    let low_level = manifest["low_level"].as_str().unwrap_or("dt");
    let validation = &manifest["validation"];
    let number = |key: &str| validation[key].as_f64().unwrap_or(f64::NAN);
    let seeds = manifest["seeds"].as_array().map_or(0, Vec::len);
    let chosen = match seeds {
        0 => "the only one".to_owned(),
        more => format!("the best of {more} by validation"),
    };
    let scored = match validation.is_object() {
        true => format!(
            "{:.3} [{:.3} to {:.3}] ({}, {} validation traces, which chose the weights)",
            number("value"),
            number("low"),
            number("high"),
            validation["metric"].as_str().unwrap_or_default(),
            validation["traces"]
        ),
        false => "not recorded".to_owned(),
    };
    let state = state_of(low_level).join("; ");
    format!(
        "# {name}\n\nA policy of bufgym for shared-memory switches. Use it as `ndt:checkpoints/{name}`.\n\n\
         |||\n|---|---|\n\
         |trained on|`{}`|\n|objective|`{}`|\n|sets α on top of|`{low_level}`|\n\
         |seed|{}, {chosen}|\n|decisions, updates|{}, {}|\n|score|{scored}|\n\
         |parameters|{}|\n|state that a switch needs|{state}|\n\n\
         ## Limits\n\n\
         The score chose this policy, so it is a little too good; [the results](../../docs/results.md) have scores on \
         unseen traces. Measure your own scenario before you use the policy elsewhere: \
         `bufgym eval --scenario mine.toml --policy ndt:checkpoints/{name}`. \
         Trained and tested in simulation only; no hardware switch has run it.\n\n\
         Written from `manifest.json`.\n",
        text("scenario"),
        text("objective"),
        count("seed"),
        count("decisions"),
        count("updates"),
        manifest["architecture"]["parameters"],
    )
}

/// `BLESS=1 cargo test --release --test cli cards` rewrites them.
#[test]
fn cards_of_shipped_policies_follow_from_their_manifests() {
    for (folder, manifest) in shipped() {
        let (path, card) = (folder.join("README.md"), card(&folder, &manifest));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &card).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == card,
            "{} is out of date: BLESS=1",
            path.display()
        );
    }
}
