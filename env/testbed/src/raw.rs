//! Calls to the kernel that have no safe wrapper: a private namespace, packet sockets bound to an
//! interface, the offloads of an interface, and real-time priority. Every unsafe block of the crate is
//! here.
#![allow(
    unsafe_code,
    reason = "unshare, AF_PACKET addresses, time stamps of packets, SIOCETHTOOL and SCHED_FIFO have no safe wrapper"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::ptr::from_mut;

/// Moves this thread, and the processes that it starts from now on, into a new network namespace. The
/// namespace ends with the last process in it.
///
/// # Errors
/// The kernel's error: without privileges, that the operation is not permitted.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: a thread that leaves its network namespace shares no memory or file differently from
    // before; sockets that are open stay in theirs.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Lets this thread run before all programs without real-time priority (`SCHED_FIFO`). Its children do
/// not inherit this.
///
/// # Errors
/// The kernel's error: without privileges, that the operation is not permitted.
pub(crate) fn run_in_real_time(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a structure that lives through the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}

/// Returns the size of a C type in the form that the kernel expects.
fn length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("a small structure")
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn set_option<T: Copy>(
    socket: RawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a value of the length given, which the kernel copies.
    let result = unsafe {
        libc::setsockopt(
            socket,
            level,
            option,
            (&raw const value).cast(),
            length::<T>(),
        )
    };
    check(result).map(drop)
}

/// A packet that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Length of the packet, bytes.
    pub(crate) length: usize,
    /// Time when the interface received it, nanoseconds of the system's real-time clock, if the kernel
    /// has recorded it.
    pub(crate) stamp_ns: Option<u64>,
}

/// A socket that receives the IPv4 frames that come in by one interface, and sends frames out of it.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
}

/// Room for the time stamp of a packet, aligned as the kernel's control messages are.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl PacketSocket {
    /// Opens a socket on the interface with this number.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open(interface: u32, buffer_bytes: libc::c_int) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain call; the descriptor is owned from here on.
        let socket = unsafe {
            // Protocol 0 receives nothing until the socket is bound.
            let descriptor = check(libc::socket(libc::AF_PACKET, kind, 0))?;
            OwnedFd::from_raw_fd(descriptor)
        };
        let raw = socket.as_raw_fd();
        let forced = set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer_bytes);
        if forced.is_err() {
            set_option(raw, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer_bytes)?;
        }
        set_option(raw, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1_i32)?;
        // A dedicated interface needs no queue discipline in front of it.
        set_option(raw, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1_i32)?;
        let ipv4 = u16::try_from(libc::ETH_P_IP).expect("a number of two bytes");
        // SAFETY: all fields may be zero.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("a small number");
        address.sll_protocol = ipv4.to_be();
        address.sll_ifindex = i32::try_from(interface).map_err(io::Error::other)?;
        // SAFETY: the address has the length given and lives through the call.
        let bound = unsafe {
            libc::bind(
                raw,
                (&raw const address).cast(),
                length::<libc::sockaddr_ll>(),
            )
        };
        check(bound)?;
        Ok(PacketSocket { socket })
    }

    /// Takes a packet that has come in, if there is one. Bytes that do not fit into `frame` are cut
    /// off; the length is that of the whole packet.
    ///
    /// # Errors
    /// The kernel's error, unless it says that there is none.
    pub(crate) fn receive(&self, frame: &mut [u8]) -> io::Result<Option<Received>> {
        let mut part = libc::iovec {
            iov_base: frame.as_mut_ptr().cast(),
            iov_len: frame.len(),
        };
        let mut control = Control([0; 64]);
        // SAFETY: all fields may be zero.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = from_mut(&mut part);
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len();
        // SAFETY: the header's pointers are to `frame` and `control`, of the lengths given, which live
        // through the call and are borrowed by nobody else.
        let received =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
        let Ok(length) = usize::try_from(received) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        Ok(Some(Received {
            length,
            stamp_ns: stamp(&header),
        }))
    }

    /// Sends a frame. The interface at the other end receives it within the call.
    ///
    /// # Errors
    /// The kernel's error: a frame that it has no room for is lost.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer is to a slice of the length given.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
            )
        };
        match usize::try_from(sent) {
            Ok(length) if length == frame.len() => Ok(()),
            Ok(_) => Err(io::Error::other("a frame was sent in part")),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the number of packets that came in and found no room in the socket since the last call.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn take_drops(&self) -> io::Result<u64> {
        // SAFETY: the structure has two integers, which may be zero, and the length given.
        let statistics = unsafe {
            let mut statistics: libc::tpacket_stats = zeroed();
            let mut size = length::<libc::tpacket_stats>();
            check(libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut size,
            ))?;
            statistics
        };
        Ok(u64::from(statistics.tp_drops))
    }
}

/// Returns the time stamp among the control messages of a packet.
fn stamp(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled in the control messages and their length; the macros of libc stay
    // within it, and the time stamp is read where a message of its kind and length says that it lies.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SO_TIMESTAMPNS {
                let time: libc::timespec = libc::CMSG_DATA(message)
                    .cast::<libc::timespec>()
                    .read_unaligned();
                let seconds = u64::try_from(time.tv_sec).ok()?;
                return Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?);
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}

/// Disables offloads like `ethtool -K NAME tx off sg off tso off gso off gro off`: the interface sends
/// packets with checksums, none larger than its MTU.
///
/// # Errors
/// The kernel's error, with the name of the offload.
pub(crate) fn disable_offloads(name: &str) -> io::Result<()> {
    // ETHTOOL_STXCSUM, _SSG, _STSO, _SGSO and _SGRO of linux/ethtool.h.
    let offloads = [
        ("tso", 0x1f_u32),
        ("gso", 0x24),
        ("gro", 0x2c),
        ("sg", 0x19),
        ("tx", 0x17),
    ];
    // SAFETY: a plain call; the descriptor is owned from here on.
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?)
    };
    for (offload, command) in offloads {
        // `struct ethtool_value`: the command and its value.
        let mut value = [command, 0_u32];
        // SAFETY: all fields may be zero.
        let mut request: libc::ifreq = unsafe { zeroed() };
        let bytes = name.bytes().take(libc::IFNAMSIZ - 1);
        for (slot, byte) in request.ifr_name.iter_mut().zip(bytes) {
            *slot = libc::c_char::try_from(byte).map_err(io::Error::other)?;
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: the request and the value that it points to live through the call and have the
        // layout that this command expects.
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
        check(result).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("offload {offload} of {name}: {error}"),
            )
        })?;
    }
    Ok(())
}
