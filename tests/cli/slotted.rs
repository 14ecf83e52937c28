//! `bufgym slotted`.

use crate::harness::Sandbox;

#[test]
fn a_list_of_packets_gives_one_json_object() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "slot,port\n0,0\n0,0\n0,0\n0,1\n3,1\n");
    let run = sandbox.ok("slotted --policy lqd --ports 2 --buffer 2 --arrivals in.csv --json");
    let expected = serde_json::json!({
        "policy": "lqd", "arrived": 5, "transmitted": 3, "transmitted_value": 3,
        "dropped": 1, "pushed_out": 1, "slots": 4,
    });
    assert_eq!(run.json(), expected);
    sandbox.write("value.csv", "slot,port,value\n0,0,2\n0,0,7\n0,1,1\n");
    let run = sandbox.ok("slotted --policy opt --ports 2 --buffer 2 --arrivals value.csv --json");
    assert_eq!(run.json()["transmitted_value"], 9);
}

#[test]
fn a_construction_gives_the_value_of_its_formula() {
    let sandbox = Sandbox::new();
    let value = |policy: &str, generate: &str| {
        let run = sandbox.ok(&format!(
            "slotted --policy {policy} --ports 8 --buffer 64 {generate} --rounds 200 --until-last-round --json"
        ));
        run.json()["transmitted_value"].as_f64().unwrap()
    };
    for (policy, generate, ratio, tolerance) in [
        ("bpd", "--generate thm2", 4.5, 1e-9),
        ("bad", "--generate thm2", 4.5, 1e-9),
        (
            "lwd",
            "--order fifo --generate thm3",
            2.0 * (1.0 - 1.0 / 8.0) + 1.0,
            1e-9,
        ),
        (
            "mtvd",
            "--generate thm6 --max-value 10",
            (80.0 - 7.0) / 10.0,
            1e-9,
        ),
        ("followlqd", "--generate followlqd-lower-bound", 4.5, 0.02),
    ] {
        let measured = value("scripted-opt", generate) / value(policy, generate);
        assert!(
            (measured - ratio).abs() < tolerance,
            "{policy} {generate}: {measured}"
        );
    }
    let run =
        sandbox.ok("slotted --policy lqd --ports 8 --buffer 64 --generate thm1 --until-last-round");
    assert!(run.stdout.contains("Theorem 1"), "{}", run.stdout);
}

#[test]
fn the_order_matters_for_work() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "slot,port,work\n0,0,3\n0,0,1\n1,0,1\n");
    let of = |order: &str| {
        let command = format!(
            "slotted --policy lqd --ports 1 --buffer 2 --order {order} --arrivals in.csv --json"
        );
        sandbox.ok(&command).json()["transmitted"].clone()
    };
    assert_eq!(of("pq"), 3);
    assert_eq!(of("fifo"), 2);
}

#[test]
fn the_sweep_writes_table_and_figure() {
    let sandbox = Sandbox::new();
    let command = "slotted --sweep fig14 --rounds 300 --seed 4 --out fig --json";
    let run = sandbox.ok(command);
    let value = run.json();
    let points = value["credence"].as_array().unwrap();
    assert_eq!(points.len(), 21);
    assert_eq!(points[0]["ratio"], 1.0);
    assert!(points[20]["ratio"].as_f64().unwrap() > 1.5);
    assert_eq!(sandbox.read("fig/fig14.csv").lines().count(), 22);
    assert!(sandbox.read("fig/fig14.svg").contains("</svg>"));
    sandbox.refused(command, &["fig", "--force"]);
    assert_eq!(sandbox.ok(&format!("{command} --force")).json(), value);
}

#[test]
fn bad_input_is_one_line() {
    let sandbox = Sandbox::new();
    let size = "--ports 4 --buffer 8";
    let refused = |arguments: &str, words: &[&str]| {
        sandbox.refused(&format!("slotted {arguments}"), words);
    };
    refused(
        &format!("--policy lqq {size} --generate thm1"),
        &["lqq", "`lqd`"],
    );
    refused(
        &format!("--policy dt:alfa=2 {size} --generate thm1"),
        &["alfa", "`alpha`"],
    );
    refused(
        &format!("--policy dt:alpha=-2 {size} --generate thm1"),
        &["alpha", "-2"],
    );
    refused(
        &format!("--policy credence:oracle=forest {size} --generate poisson-bursts"),
        &["perfect"],
    );
    refused(
        &format!("--policy lqd {size} --generate thm5"),
        &["thm5", "thm1"],
    );
    refused(
        &format!("--policy lqd {size} --arrivals no.csv"),
        &["no.csv"],
    );
    refused(&format!("--policy lqd {size}"), &["--arrivals"]);
    refused("--policy lqd --ports 4 --generate thm1", &["--buffer"]);
    refused(
        "--policy lqd --ports 0 --buffer 8 --generate thm1",
        &["ports"],
    );
    refused(
        &format!("--policy lqd {size} --generate thm1 --order lifo"),
        &["lifo", "pq"],
    );
    refused(
        &format!("--policy scripted-opt {size} --generate poisson-bursts"),
        &["scripted-opt"],
    );
    refused(
        &format!("--policy followlqd {size} --generate thm1"),
        &["unit packets"],
    );
    sandbox.write("work.csv", "slot,port,work\n0,0,1\n0,1,0\n");
    refused(
        &format!("--policy lwd {size} --arrivals work.csv"),
        &["work.csv:3", "work"],
    );
    sandbox.write("port.csv", "slot,port\n0,4\n");
    refused(
        &format!("--policy lqd {size} --arrivals port.csv"),
        &["port.csv:2", "port", "4"],
    );
    refused(
        "--policy opt --ports 8 --buffer 64 --generate thm1",
        &["opt", "too large"],
    );
    refused("--sweep fig15", &["forest"]);
    refused("--sweep fig13", &["fig13", "fig14"]);
}
