//! The flows of a host: connections that send and receive.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::machine::monotonic_ns;
use bufgym_sim::capture::{LISTEN, address, host_of};

use crate::message::{FromHost, HostPlan, Receiving, Sending};

/// Largest number of connections that may wait to be accepted.
pub(super) const BACKLOG: i32 = 4_096;
/// Number of bytes that are written or discarded at a time.
const BLOCK: usize = 256 << 10;
/// A flow that is due within this time starts now.
const EARLY_NS: u64 = 20_000;
/// Number of events that are taken at a time.
const EVENTS: usize = 64;

const ORDERS: u64 = 0;
const TIMER: u64 = 1;
const LISTENER: u64 = 2;
/// Even numbers from here on are flows that are sent, odd ones flows that are received.
const FLOWS: u64 = 4;

/// The connections of a host, and the time when it opens the next one.
pub(super) struct Players {
    epoll: OwnedFd,
    timer: OwnedFd,
    listener: Socket,
    zero_ns: Option<u64>,
    /// Index of the next flow; all flows before it have started.
    next: usize,
    sending: Vec<Option<Outgoing>>,
    receiving: Vec<Option<Incoming>>,
    vacant: Vec<usize>,
    expected: HashMap<(u32, u16), Receiving>,
    zeros: Vec<u8>,
    discarded: Vec<MaybeUninit<u8>>,
    events: Vec<epoll::Event>,
    refused: u64,
}

struct Outgoing {
    socket: Socket,
    left: u64,
}

struct Incoming {
    socket: Socket,
    /// Number of the flow and remaining bytes; `None` for probes.
    flow: Option<(u32, u64)>,
}

impl Players {
    /// Listens for the flows of the plan.
    pub(super) fn new(plan: &HostPlan) -> io::Result<Players> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        listener.set_nonblocking(true)?;
        listener.set_reuse_address(true)?;
        listener.bind(&SocketAddrV4::new(address(plan.host), LISTEN).into())?;
        listener.listen(BACKLOG)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let watch = |source: BorrowedFd<'_>, token| {
            epoll::add(&epoll, source, EventData::new_u64(token), EventFlags::IN)
        };
        watch(io::stdin().as_fd(), ORDERS)?;
        watch(timer.as_fd(), TIMER)?;
        watch(listener.as_fd(), LISTENER)?;
        let expected = plan.receives.iter();
        Ok(Players {
            epoll,
            timer,
            listener,
            zero_ns: None,
            next: 0,
            sending: plan.sends.iter().map(|_| None).collect(),
            receiving: Vec::new(),
            vacant: Vec::new(),
            expected: expected
                .map(|flow| ((flow.from, flow.port), *flow))
                .collect(),
            zeros: vec![0; BLOCK],
            discarded: vec![MaybeUninit::uninit(); BLOCK],
            events: Vec::with_capacity(EVENTS),
            refused: 0,
        })
    }

    /// Sets time zero of the flows to this instant of the monotonic clock.
    pub(super) fn start(&mut self, zero_ns: u64) {
        self.zero_ns = Some(zero_ns);
    }

    /// Returns the number of connections from ports that no flow has.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Opens the connections that are due, waits for the next event and handles it. Returns true if an
    /// order has come.
    pub(super) fn turn(
        &mut self,
        plan: &HostPlan,
        mut say: impl FnMut(&FromHost) -> io::Result<()>,
    ) -> io::Result<bool> {
        self.open_due(plan, &mut say)?;
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            None,
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ordered = false;
        for event in &events {
            match event.data.u64() {
                ORDERS => ordered = true,
                TIMER => drop(rustix::io::read(&self.timer, &mut [0; 8])),
                LISTENER => self.accept(plan)?,
                token => {
                    let place = usize::try_from((token - FLOWS) / 2).map_err(io::Error::other)?;
                    match token % 2 {
                        0 => self.send(place, &plan.sends[place], event.flags)?,
                        _ => self.receive(place, &mut say)?,
                    }
                }
            }
        }
        self.events = events;
        Ok(ordered)
    }

    fn open_due(
        &mut self,
        plan: &HostPlan,
        say: &mut impl FnMut(&FromHost) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(zero_ns) = self.zero_ns else {
            return Ok(());
        };
        while let Some(flow) = plan.sends.get(self.next) {
            let due_ns = zero_ns + flow.start_ns;
            if due_ns > monotonic_ns() + EARLY_NS {
                return self.wake_at(due_ns);
            }
            while monotonic_ns() < due_ns {
                std::hint::spin_loop();
            }
            let at_ns = self.open(plan, self.next, flow)?;
            say(&FromHost::Started {
                flow: flow.flow,
                at_ns,
            })?;
            self.next += 1;
        }
        Ok(())
    }

    fn wake_at(&self, at_ns: u64) -> io::Result<()> {
        let seconds = |ns: u64| Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec {
            it_interval: seconds(0),
            it_value: seconds(at_ns - EARLY_NS),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    /// Opens the connection of a flow and returns the time of that.
    fn open(&mut self, plan: &HostPlan, place: usize, flow: &Sending) -> io::Result<u64> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddrV4::new(address(plan.host), flow.port).into())?;
        // Defaults can only be chosen in the first namespace.
        socket.set_tcp_congestion(plan.stack.congestion.as_bytes())?;
        let at_ns = monotonic_ns();
        match socket.connect(&SocketAddrV4::new(address(flow.to), LISTEN).into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(of_flow(flow.flow, &error));
            }
            _ => {}
        }
        let token = EventData::new_u64(FLOWS + 2 * place as u64);
        epoll::add(
            &self.epoll,
            &socket,
            token,
            EventFlags::OUT | EventFlags::IN,
        )?;
        self.sending[place] = Some(Outgoing {
            socket,
            left: flow.bytes,
        });
        Ok(at_ns)
    }

    fn send(&mut self, place: usize, flow: &Sending, flags: EventFlags) -> io::Result<()> {
        let Some(outgoing) = &mut self.sending[place] else {
            return Ok(());
        };
        if let Some(error) = outgoing.socket.take_error()? {
            return Err(of_flow(flow.flow, &error));
        }
        if outgoing.left > 0 {
            let most = usize::try_from(outgoing.left).unwrap_or(BLOCK).min(BLOCK);
            match outgoing.socket.write(&self.zeros[..most]) {
                Ok(written) => outgoing.left -= written as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(of_flow(flow.flow, &error)),
            }
            if outgoing.left == 0 {
                outgoing.socket.shutdown(Shutdown::Write)?;
                let token = EventData::new_u64(FLOWS + 2 * place as u64);
                epoll::modify(&self.epoll, &outgoing.socket, token, EventFlags::IN)?;
            }
            return Ok(());
        }
        // The receiver has closed the connection: all bytes have arrived.
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.sending[place] = None;
        }
        Ok(())
    }

    fn accept(&mut self, plan: &HostPlan) -> io::Result<()> {
        loop {
            let (socket, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            let flow = match peer.as_socket() {
                Some(SocketAddr::V4(peer)) => self.flow_from(*peer.ip(), peer.port(), plan),
                _ => None,
            };
            if flow.is_none() && self.zero_ns.is_some() {
                self.refused += 1;
            }
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.receiving.push(None);
                self.receiving.len() - 1
            });
            let token = EventData::new_u64(FLOWS + 2 * place as u64 + 1);
            epoll::add(&self.epoll, &socket, token, EventFlags::IN)?;
            self.receiving[place] = Some(Incoming { socket, flow });
        }
    }

    fn flow_from(&mut self, peer: Ipv4Addr, port: u16, plan: &HostPlan) -> Option<(u32, u64)> {
        let hosts = usize::try_from(plan.hosts).ok()?;
        let from = u32::try_from(host_of(peer.octets(), hosts)?).ok()?;
        let flow = self.expected.remove(&(from, port))?;
        Some((flow.flow, flow.bytes))
    }

    fn receive(
        &mut self,
        place: usize,
        say: &mut impl FnMut(&FromHost) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(incoming) = &mut self.receiving[place] else {
            return Ok(());
        };
        // With MSG_TRUNC, TCP discards the bytes without a copy.
        let read = incoming
            .socket
            .recv_with_flags(&mut self.discarded, libc::MSG_TRUNC);
        let at_ns = monotonic_ns();
        let read = match read {
            Ok(read) => read as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => match incoming.flow {
                Some((flow, _)) => return Err(of_flow(flow, &error)),
                None => 0,
            },
        };
        match &mut incoming.flow {
            Some((flow, left)) if read > 0 => {
                *left = left
                    .checked_sub(read)
                    .ok_or_else(|| of_flow(*flow, &"more bytes came than were sent"))?;
                if *left == 0 {
                    say(&FromHost::Finished { flow: *flow, at_ns })?;
                }
            }
            Some((flow, left)) if *left > 0 => {
                return Err(of_flow(*flow, &format!("closed with {left} bytes to come")));
            }
            _ if read > 0 => {}
            _ => {
                self.receiving[place] = None;
                self.vacant.push(place);
            }
        }
        Ok(())
    }
}

fn of_flow(flow: u32, problem: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("flow {flow} in the order of starts: {problem}"))
}

/// Opens connections one after another, and returns how long each took, nanoseconds.
pub(super) fn probe(to: u32, connections: u32) -> io::Result<Vec<u64>> {
    let server = SocketAddrV4::new(address(to), LISTEN).into();
    let mut times = Vec::new();
    for _ in 0..connections {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let start_ns = monotonic_ns();
        socket.connect(&server)?;
        times.push(monotonic_ns() - start_ns);
    }
    Ok(times)
}
