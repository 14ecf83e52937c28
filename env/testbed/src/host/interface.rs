//! The interface and the kernel settings of a host.

use std::fs;
use std::io;
use std::path::Path;

use bufgym_sim::capture::{address, hardware_address};

use crate::commands;
use crate::message::{HostPlan, Stack};
use crate::{INTERFACE, raw};

/// Bytes that Ethernet's frame check sequence adds, which the kernel does not count.
const FCS: u32 = 4;
/// Bytes of Ethernet's header.
const HEADER: u32 = 14;
/// Frames that the interface may send at once; the switch's model of the line spreads them.
const BURST_FRAMES: u32 = 3;
/// Bytes that may wait in the interface: more than the windows of all flows.
const QUEUE_BYTES: u64 = 1 << 30;

/// Sets up the namespace: no offloads, addresses of all hosts, rate of the interface, TCP. Returns true
/// if the processors of the hosts run TCP's work on packets that the switch has sent. Otherwise the
/// processor of the switch does this work within the call that sends.
pub(super) fn configure(plan: &HostPlan) -> io::Result<bool> {
    raw::disable_offloads(INTERFACE)?;
    tune(&plan.stack)?;
    commands::ip(&addresses(plan)).map_err(io::Error::other)?;
    commands::tc(&shaper(&plan.stack)).map_err(io::Error::other)?;
    Ok(steering(&plan.processors).is_some_and(|script| commands::with_own_mounts(&script)))
}

/// Returns a script that enables receive packet steering of the interface to these processors. The file
/// system with the setting shows the namespace that it was mounted in.
fn steering(processors: &[usize]) -> Option<String> {
    let bits = processors
        .iter()
        .map(|&processor| 1_u32.checked_shl(u32::try_from(processor).ok()?));
    let mask = bits.sum::<Option<u32>>()?;
    Some(format!(
        "mount -t sysfs sysfs /sys && echo {mask:x} > /sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus"
    ))
}

fn addresses(plan: &HostPlan) -> String {
    let (own, stack) = (address(plan.host), &plan.stack);
    let mut lines = format!(
        "link set lo up\n\
         link set {INTERFACE} mtu {mtu} gso_max_segs 1 arp off\n\
         address add {own}/24 dev {INTERFACE}\n\
         link set {INTERFACE} up\n\
         route replace 10.0.0.0/24 dev {INTERFACE} proto kernel scope link src {own} \
         rto_min {rto}ms initcwnd {window}\n",
        mtu = stack.mtu,
        rto = stack.min_rto_ms,
        window = stack.init_cwnd,
    );
    for other in (0..plan.hosts).filter(|other| *other != plan.host) {
        let (to, hardware) = (address(other), commands::hardware(hardware_address(other)));
        lines +=
            &format!("neighbour replace {to} lladdr {hardware} dev {INTERFACE} nud permanent\n");
    }
    lines
}

/// Returns a token bucket at line rate. Packets then wait at the host as in front of a real interface,
/// where TCP small queues count them.
fn shaper(stack: &Stack) -> String {
    let burst = BURST_FRAMES * (stack.mtu + HEADER + FCS);
    format!(
        "qdisc replace dev {INTERFACE} root handle 1: stab overhead {FCS} tbf rate {rate}bit \
         burst {burst} limit {QUEUE_BYTES}\n",
        rate = stack.rate_bps,
    )
}

fn tune(stack: &Stack) -> io::Result<()> {
    let flag = |on: bool| i32::from(on).to_string();
    let settings = [
        ("tcp_ecn", flag(stack.ecn)),
        ("tcp_timestamps", flag(stack.timestamps)),
        ("tcp_sack", flag(stack.sack)),
        ("tcp_rmem", format!("4096 131072 {}", stack.receive_buffer)),
        ("tcp_wmem", format!("4096 16384 {}", stack.receive_buffer)),
        // Metrics learned by one flow do not apply to the next one.
        ("tcp_no_metrics_save", flag(true)),
        // Ports of probes; those of flows are higher.
        ("ip_local_port_range", "1024 4999".to_owned()),
    ];
    for (name, value) in settings {
        let path = Path::new("/proc/sys/net/ipv4").join(name);
        fs::write(&path, value).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
    }
    // A kernel without IPv6 has nothing to switch off.
    let ipv6 = Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    if ipv6.exists() {
        fs::write(ipv6, "1")?;
    }
    let somaxconn = Path::new("/proc/sys/net/core/somaxconn");
    if somaxconn.exists() {
        fs::write(somaxconn, super::players::BACKLOG.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_steered_to_the_processors_of_the_hosts() {
        let script = steering(&[0, 2, 4]).unwrap();
        assert!(
            script.contains("echo 15 > /sys/class/net/eth0/"),
            "{script}"
        );
        assert_eq!(steering(&[1, 32]), None, "one word of the mask is enough");
    }
}
