"""Checks what the switch on DPDK has printed: check_dpdk.py SWITCH.json RECEIVED.json... Prints its figures."""

import json
import sys
from pathlib import Path

switch, *received = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
drops = {why: count for why, count in switch["dropped"].items() if why != "no_port"}
ports = switch["per_port"]

faults = []


def check(holds, what):
    if not holds:
        faults.append(what)


queued = sum(port["queued"] for port in ports)
outside = switch["arrived"] - switch["forwarded"] - sum(switch["dropped"].values()) - queued
check(0 <= outside <= switch["lost_by_devices"], f"{outside} packets are neither forwarded nor dropped nor queued")
check(all(port["forwarded"] > 0 for port in ports), "a port has forwarded nothing")
check(sum(drops.values()) > 0, "nothing was dropped, though more arrives than leaves")
check(sum(drops.values()) == sum(port["dropped"] for port in ports), "drops of ports do not add up")
check(switch["most_occupied_bytes"] <= switch["buffer_bytes"], "the buffer was overfull")
check(switch["decisions"] > 10, f"only {switch['decisions']} decisions")
for number, port in enumerate(ports):
    # What had begun before the run's end may have left in a burst.
    most = switch["rate_bps"] / 8 * switch["seconds"] + switch["buffer_bytes"]
    check(port["forwarded_bytes"] <= most, f"port {number} was faster than its line")
for counts in received:
    check(counts["flows"] > 0, "a host has received no whole flow")

for name in ("network_us", "in_force_us", "verdict_ns", "late_us", "late_percent_of_packet"):
    times = switch[name]
    print(f"{name:<24}" + "".join(f" {key} {times[key]:>9}" for key in ("p50", "p90", "p99", "max", "count")))
print(f"forwarded {switch['forwarded']} ({switch['forwarded_per_s']:.0f}/s), dropped {drops}, "
      f"decisions {switch['decisions']}, lost by devices {switch['lost_by_devices']}, busy {switch['busy_share']:.0%}")
print(f"received {received}")
sys.exit("\n".join(faults) or None)
