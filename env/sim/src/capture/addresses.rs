//! Addresses of hosts and ports of flows in captures.

use std::net::Ipv4Addr;

/// Port that every host listens on.
pub const LISTEN: u16 = 5_001;
/// Port of the first flow that a host sends; the next ones follow.
pub const FIRST_PORT: u16 = 10_000;
/// Maximum number of flows that a host can send: each needs a port.
pub const MAX_SENDS: usize = 50_000;

/// Returns the address of a host: 10.0.0.1 for the first one.
pub fn address(host: u32) -> Ipv4Addr {
    let [_, high, middle, low] = (host + 1).to_be_bytes();
    Ipv4Addr::new(10, high, middle, low)
}

/// Returns the number of the host with this address, if it is one of `hosts`.
pub fn host_of(address: [u8; 4], hosts: usize) -> Option<usize> {
    let [10, high, middle, low] = address else {
        return None;
    };
    let number = usize::try_from(u32::from_be_bytes([0, high, middle, low])).ok()?;
    number.checked_sub(1).filter(|host| *host < hosts)
}

/// Returns the hardware address of a host, locally administered: 02:00:00:00:00:01 for the first one.
pub fn hardware_address(host: u32) -> [u8; 6] {
    let [_, high, middle, low] = (host + 1).to_be_bytes();
    [2, 0, 0, high, middle, low]
}

/// Returns the port from which a host sends flow number `place`, counted from 0 in the order of starts.
/// `None` if the host has used up its ports.
pub fn source_port(place: usize) -> Option<u16> {
    let place = u16::try_from(place).ok()?;
    (usize::from(place) < MAX_SENDS).then(|| FIRST_PORT + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_by_its_address() {
        assert_eq!(address(0), Ipv4Addr::new(10, 0, 0, 1));
        for host in [0, 3, 254, 255, 65_535] {
            let address = address(host).octets();
            assert_eq!(host_of(address, 65_536), Some(host as usize));
            assert_eq!(host_of(address, host as usize), None);
            assert_eq!(hardware_address(host)[3..], address[1..]);
        }
        assert_eq!(host_of([10, 0, 0, 0], 4), None);
        assert_eq!(host_of([192, 168, 0, 1], 4), None);
    }

    #[test]
    fn flows_have_ports_of_their_own_until_these_are_used_up() {
        assert_eq!(source_port(0), Some(10_000));
        assert_eq!(source_port(MAX_SENDS - 1), Some(59_999));
        assert_eq!(source_port(MAX_SENDS), None);
        assert_eq!(source_port(1 << 20), None);
    }
}
