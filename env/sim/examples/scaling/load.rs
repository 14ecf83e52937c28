//! Traffic that keeps any number of ports and flows permanently busy.

use bufgym_sim::network::{OneSwitch, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;

/// Ports that are compared.
pub const PORTS: [u32; 7] = [4, 8, 16, 32, 64, 128, 256];
/// Concurrent flows that are compared.
pub const FLOWS: [u32; 7] = [100, 316, 1_000, 3_162, 10_000, 31_623, 100_000];

/// Endless flows, evenly spread, each with a window of `window` segments. The buffer holds all of them,
/// so that no flow waits for its timer and all are always active.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    ports: u32,
    flows: u32,
    window: u32,
}

impl Load {
    /// Returns a load of eight flows for every port.
    pub fn of_ports(ports: u32) -> Load {
        Load {
            ports,
            flows: 8 * ports,
            window: 10,
        }
    }

    /// Returns a load of the default switch; one segment of each flow is in flight.
    pub fn of_flows(flows: u32) -> Load {
        Load {
            ports: 16,
            flows,
            window: 1,
        }
    }

    /// Returns a simulation in which every flow has sent and the queues have settled.
    pub fn simulator(self) -> Simulator {
        let mut scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = self.ports;
            scenario.network.buffer_bytes = 1_000_000_000;
            scenario.tcp.init_cwnd = self.window;
            scenario.tcp.min_rto_us = 1_000_000;
        });
        scenario.tcp.max_cwnd_bytes = u64::from(self.window * scenario.packets.mss);
        scenario.traffic.active_ports.max = self.ports;
        scenario.traffic.incast_degree.max = self.ports - 1;
        let mut simulator = PolicySpec::baseline()
            .simulator::<OneSwitch>(&scenario, &self.trace())
            .expect("the load fits the switch");
        let settled = 4 * u64::from(self.flows * self.window);
        forward(&mut simulator, settled.max(100_000));
        assert_eq!(simulator.active_flows().count(), self.flows as usize);
        simulator
    }

    fn trace(self) -> Trace {
        let flow = |id: u32| {
            let src = id % self.ports;
            let hop = 1 + id / self.ports % (self.ports - 1);
            FlowSpec {
                id: u64::from(id),
                src,
                dst: (src + hop) % self.ports,
                start: Instant::from_ns(u64::from(id) * 997),
                size: Trace::MAX_SIZE,
                kind: 0,
                query: -1,
                priority: 0,
            }
        };
        Trace {
            flows: (0..self.flows).map(flow).collect(),
            kinds: vec![Trace::DEFAULT_KIND.to_owned()],
            seed: 0,
        }
    }
}

/// Runs until `packets` more packets, data and acknowledgements, have left the switch.
pub fn forward(simulator: &mut Simulator, packets: u64) {
    let until = simulator.packets_forwarded() + packets;
    while simulator.packets_forwarded() < until {
        assert!(simulator.step(), "the flows never end");
    }
}
