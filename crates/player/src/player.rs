//! The loop: one process, one epoll instance, the sockets of all hosts.

use crate::http::{self, Came, Client, Exchange};
use crate::log::{self, Log};
use crate::messages::Messages;
use crate::plan::{Connection, Datagrams, Plan};
use crate::socket::{End, Told};
use crate::sys::{self, Deadlines, Poll};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
/// Time zero is so many of these and as much more, by the clock of the system: timers that count in ticks see it in the same phase in every run. Linux's
/// tick number zero is that of 300 s (`INITIAL_JIFFIES`), and the slots of its wheel are 1, 8 and 64 ticks long: with 250 or 1000 ticks a second a
/// slot of each begins at time zero, as in the simulator.
const START_GRID_NS: u64 = 256_000_000;
const START_OFFSET_NS: u64 = 224_000_000;

/// How often progress is told in a run that takes all its time.
const PROGRESS_STEPS: u64 = 200;

/// Plays a plan; `progress` is told the share of its time that has passed, now and then.
///
/// # Errors
/// A sentence that names the host or connection.
pub fn play(plan: &Plan, progress: &mut dyn FnMut(f64)) -> Result<Log, String> {
    sys::exact_timers();
    let mut player = Player::new(plan)?;
    player.open_early()?;
    player.run(progress)?;
    Ok(player.finish())
}

struct Player<'a> {
    /// The timer went off or a message is complete. A look at the clock costs the virtual kernel as much as a packet, so there is one only then.
    news: bool,
    plan: &'a Plan,
    poll: Poll,
    /// Client's and server's end of each connection.
    ends: Vec<[End; 2]>,
    begun: Vec<bool>,
    /// Flow from the client and from the server of each connection.
    flow_of: Vec<[Option<u32>; 2]>,
    listeners: Vec<OwnedFd>,
    by_client: BTreeMap<SocketAddrV4, u32>,
    streams: Vec<Stream>,
    log: Log,
    timeouts_before: Vec<u32>,
    messages: Messages,
    /// Times at which flows stop.
    stops: BinaryHeap<Reverse<(u64, u32)>>,
    entered: Option<u32>,
    web: Option<Web>,
    /// How the kernel hears what applications know.
    told: Told,
}

/// What requests over HTTP need.
struct Web {
    /// By message.
    exchanges: Vec<Option<Exchange>>,
    /// By connection.
    clients: Vec<Client>,
    connected: Vec<bool>,
}

/// A stream of datagrams.
struct Stream {
    from: OwnedFd,
    to: OwnedFd,
    address: SocketAddrV4,
    sent: u64,
    received: u64,
}

impl Stream {
    fn receive(&mut self) {
        while sys::discard_datagram(self.to.as_raw_fd()).is_ok() {
            self.received += 1;
        }
    }
}

impl<'a> Player<'a> {
    fn new(plan: &'a Plan) -> Result<Player<'a>, String> {
        let mut flow_of = vec![[None; 2]; plan.connections.len()];
        for (number, flow) in plan.flows.iter().enumerate() {
            flow_of[flow.connection as usize][usize::from(!flow.from_client)] = Some(number as u32);
        }
        let client = |c: &Connection| SocketAddrV4::new(plan.hosts[c.client as usize].address, c.client_port);
        let mut player = Player {
            news: true,
            plan,
            poll: Poll::new().map_err(|e| format!("epoll: {e}"))?,
            ends: plan.connections.iter().map(|_| Default::default()).collect(),
            begun: vec![false; plan.connections.len()],
            flow_of,
            listeners: Vec::new(),
            by_client: plan.connections.iter().enumerate().map(|(n, c)| (client(c), n as u32)).collect(),
            streams: Vec::new(),
            log: Log {
                messages: vec![log::Message::default(); plan.messages.len()],
                flows: vec![log::Flow::default(); plan.flows.len()],
                datagrams: vec![log::Datagrams::default(); plan.datagrams.len()],
                ..Log::default()
            },
            timeouts_before: vec![0; plan.messages.len()],
            messages: Messages::new(&Plan::default(), 0),
            stops: BinaryHeap::new(),
            entered: None,
            web: None,
            told: match plan.deadline_map {
                Some(map) => Told::Map(Deadlines::open(map).map_err(|e| format!("the map of deadlines: {e}"))?),
                None if plan.options => Told::Options,
                None => Told::Nothing,
            },
        };
        if plan.http {
            player.web = Some(Web {
                exchanges: http::exchanges(plan)?,
                clients: plan.connections.iter().map(|_| Client::default()).collect(),
                connected: vec![false; plan.connections.len()],
            });
        } else {
            player.listen()?;
        }
        for stream in &plan.datagrams {
            let stream = player.stream(stream)?;
            let token = player.listener_token(player.listeners.len() + player.streams.len());
            let watched = player.poll.watch(stream.to.as_raw_fd(), IN, token, true);
            watched.map_err(|e| format!("epoll: {e}"))?;
            player.streams.push(stream);
        }
        Ok(player)
    }

    /// Goes to a host's namespace, where it stays until the next.
    fn enter(&mut self, host: u32) -> Result<(), String> {
        let path = &self.plan.hosts[host as usize].namespace;
        if self.entered != Some(host) && !path.is_empty() {
            sys::enter_namespace(Path::new(path)).map_err(|e| format!("network namespace {path}: {e}"))?;
            self.entered = Some(host);
        }
        Ok(())
    }

    /// One listening socket for each server, port and algorithm.
    fn listen(&mut self) -> Result<(), String> {
        let wanted: BTreeMap<(u32, u16), &Connection> =
            self.plan.connections.iter().map(|c| ((c.server, c.server_port), c)).collect();
        for ((server, port), connection) in wanted {
            self.enter(server)?;
            let at = SocketAddrV4::new(self.plan.hosts[server as usize].address, port);
            let cc = connection.server_cc.as_ref().unwrap_or(&connection.cc);
            let fd = tcp_socket(connection, cc).and_then(|fd| {
                sys::bind(fd.as_raw_fd(), at)?;
                sys::listen(fd.as_raw_fd())?;
                let token = self.listener_token(self.listeners.len());
                self.poll.watch(fd.as_raw_fd(), IN, token, true)?;
                Ok(fd)
            });
            let fd = fd.map_err(|e| format!("listening at {at} under `{cc}`: {e}"))?;
            self.listeners.push(fd);
        }
        Ok(())
    }

    fn stream(&mut self, plan: &Datagrams) -> Result<Stream, String> {
        let address = |host: u32, port| SocketAddrV4::new(self.plan.hosts[host as usize].address, port);
        let (from, to) = (address(plan.from, plan.port), address(plan.to, plan.to_port));
        let open = |at: SocketAddrV4| {
            let fd = sys::socket(libc::SOCK_DGRAM)?;
            sys::bind(fd.as_raw_fd(), at)?;
            Ok(fd)
        };
        self.enter(plan.from)?;
        let sender = open(from).map_err(|e: io::Error| format!("datagrams from {from}: {e}"))?;
        self.enter(plan.to)?;
        let receiver = open(to).map_err(|e| format!("datagrams to {to}: {e}"))?;
        Ok(Stream { from: sender, to: receiver, address: to, sent: 0, received: 0 })
    }

    // Tokens: two per connection, then the listeners, then the receivers of datagrams.
    fn listener_token(&self, number: usize) -> u64 {
        (2 * self.plan.connections.len() + number) as u64
    }

    /// Opens the connections that are there before the run begins.
    fn open_early(&mut self) -> Result<(), String> {
        let early: Vec<u32> =
            (0..self.plan.connections.len() as u32).filter(|&c| self.plan.connections[c as usize].early).collect();
        for &connection in &early {
            self.connect(connection)?;
        }
        let mut events = Vec::new();
        let deadline = sys::now() + 60_000_000_000;
        while early.iter().any(|&c| !self.is_open(c)) {
            if sys::now() >= deadline {
                return Err("connections that are open before the run were not established within 60 s".to_owned());
            }
            self.wait(deadline, &mut events)?;
        }
        Ok(())
    }

    fn is_open(&self, connection: u32) -> bool {
        match &self.web {
            Some(web) => web.connected[connection as usize],
            None => self.ends[connection as usize][1].fd.is_some(),
        }
    }

    fn run(&mut self, progress: &mut dyn FnMut(f64)) -> Result<(), String> {
        let start = (sys::now() / START_GRID_NS + 1) * START_GRID_NS + START_OFFSET_NS;
        self.log.start_ns = start;
        self.messages = Messages::new(self.plan, start);
        let stops = self.plan.flows.iter().enumerate();
        self.stops = stops.filter_map(|(f, flow)| Some(Reverse((start + flow.stop_ns?, f as u32)))).collect();
        let end = start + self.plan.end_ns;
        let step = (self.plan.end_ns / PROGRESS_STEPS).max(1);
        let mut told = start;
        let mut events = Vec::new();
        let mut next = start;
        loop {
            if !std::mem::take(&mut self.news) {
                self.wait(next, &mut events)?;
                continue;
            }
            let now = sys::now();
            if now >= told {
                progress(now.saturating_sub(start) as f64 / self.plan.end_ns.max(1) as f64);
                told = now + step;
            }
            if now >= end {
                break;
            }
            while let Some(message) = self.messages.release(now) {
                self.release(message, now)?;
            }
            while let Some(&Reverse((time, flow))) = self.stops.peek().filter(|Reverse((time, _))| *time <= now) {
                debug_assert!(time <= now);
                self.stops.pop();
                self.stop(flow);
            }
            let datagram = self.send_datagrams(start, now)?;
            if self.plan.stop_when_done && self.messages.all_delivered() {
                break;
            }
            let stop = self.stops.peek().map(|Reverse((time, _))| *time);
            next = [self.messages.next(), stop, datagram].into_iter().flatten().fold(end.min(told), u64::min);
            self.wait(next, &mut events)?;
        }
        self.log.end_ns = sys::now();
        Ok(())
    }

    /// Waits until `time` at the latest, and does what the sockets ask for.
    fn wait(&mut self, time: u64, events: &mut Vec<(u32, u64)>) -> Result<(), String> {
        let fault = |e: io::Error| format!("epoll: {e}");
        self.poll.wake_at(time).map_err(fault)?;
        self.poll.wait(events).map_err(fault)?;
        for &(what, token) in events.iter() {
            if token == Poll::TIMER {
                self.news = true;
                continue;
            }
            let connections = 2 * self.plan.connections.len() as u64;
            if token >= connections {
                let number = (token - connections) as usize;
                match number.checked_sub(self.listeners.len()) {
                    None => self.accept(number)?,
                    Some(stream) => self.streams[stream].receive(),
                }
                continue;
            }
            let (connection, side) = ((token / 2) as u32, (token % 2) as usize);
            let served = self.serve(connection, side, what);
            served.map_err(|e| format!("{}: {e}", self.describe(connection)))?;
        }
        Ok(())
    }

    fn describe(&self, connection: u32) -> String {
        let c = &self.plan.connections[connection as usize];
        let address = |host: u32| self.plan.hosts[host as usize].address;
        format!("connection {connection} from {} to {}", address(c.client), address(c.server))
    }

    fn connect(&mut self, connection: u32) -> Result<(), String> {
        let c = &self.plan.connections[connection as usize];
        self.begun[connection as usize] = true;
        self.enter(c.client)?;
        let address = |host: u32| -> Ipv4Addr { self.plan.hosts[host as usize].address };
        let (from, to) =
            (SocketAddrV4::new(address(c.client), c.client_port), SocketAddrV4::new(address(c.server), c.server_port));
        let fd = tcp_socket(c, &c.cc).and_then(|fd| {
            sys::bind(fd.as_raw_fd(), from)?;
            sys::connect(fd.as_raw_fd(), to)?;
            self.poll.watch(fd.as_raw_fd(), IN | OUT, u64::from(connection) * 2, true)?;
            Ok(fd)
        });
        let fd = fd.map_err(|e| format!("{}: {e}", self.describe(connection)))?;
        let end = &mut self.ends[connection as usize][0];
        (end.fd, end.watched) = (Some(fd), IN | OUT);
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> Result<(), String> {
        loop {
            let (fd, from) = match sys::accept(self.listeners[listener].as_raw_fd()) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("accepting a connection: {error}")),
            };
            let connection = *self.by_client.get(&from).ok_or_else(|| format!("a connection came from {from}"))?;
            let token = u64::from(connection) * 2 + 1;
            let lowat = self.plan.read_lowat;
            let end = &mut self.ends[connection as usize][1];
            let ready = self.poll.watch(fd.as_raw_fd(), IN, token, true).and_then(|()| {
                (end.fd, end.watched) = (Some(fd), IN);
                end.note_opening(false);
                end.wake_when(lowat)?;
                end.tell_expected(&self.told, self.log.start_ns)?;
                end.send(&self.told)
            });
            ready
                .and_then(|()| self.rewatch(connection, 1))
                .map_err(|e| format!("{}: {e}", self.describe(connection)))?;
        }
    }

    /// An application hands a message to TCP.
    fn release(&mut self, message: u32, now: u64) -> Result<(), String> {
        let m = &self.plan.messages[message as usize];
        let flow = &self.plan.flows[m.flow as usize];
        let (connection, side) = (flow.connection, usize::from(!flow.from_client));
        let opens = |web: &Web| m.bytes == Some(0) && flow.from_client && web.exchanges[message as usize].is_none();
        if self.web.as_ref().is_some_and(|web| !opens(web)) {
            return self.ask(message, connection, now);
        }
        self.log.messages[message as usize].release_ns = Some(now);
        let ends = &mut self.ends[connection as usize];
        if ends[side].ended {
            return Ok(());
        }
        self.timeouts_before[message as usize] = ends[side].timeouts();
        if m.bytes == Some(0) {
            // The application opens the connection and says nothing yet.
            self.delivered(message, now);
            return if self.begun[connection as usize] { Ok(()) } else { self.connect(connection) };
        }
        ends[side].queue(m.bytes, m.deadline_ns.map(|d| now + d));
        ends[1 - side].expect(message, m.bytes);
        if !self.begun[connection as usize] {
            return self.connect(connection);
        }
        let lowat = self.plan.read_lowat;
        let ends = &mut self.ends[connection as usize];
        let start = self.log.start_ns;
        let sent = ends[1 - side].tell_expected(&self.told, start).and_then(|()| {
            ends[1 - side].wake_when(lowat)?;
            ends[side].send(&self.told)
        });
        sent.and_then(|()| self.rewatch(connection, side)).map_err(|e| format!("{}: {e}", self.describe(connection)))
    }

    /// A request is handed to TCP; a response is its server's.
    fn ask(&mut self, message: u32, connection: u32, now: u64) -> Result<(), String> {
        let plan = self.plan;
        let Some(web) = &mut self.web else { return Ok(()) };
        let Some(exchange) = web.exchanges[message as usize] else { return Ok(()) };
        let bytes = |message: u32| plan.messages[message as usize].bytes.unwrap_or(0);
        // What a client waits for begins with its request.
        for one in [exchange.request, exchange.response] {
            self.log.messages[one as usize].release_ns = Some(now);
        }
        let client = &mut web.clients[connection as usize];
        client.ask(exchange, bytes(exchange.response), bytes(exchange.request));
        if !self.begun[connection as usize] {
            return self.connect(connection);
        }
        let sent = match (&self.ends[connection as usize][0].fd, web.connected[connection as usize]) {
            (Some(fd), true) => client.send(fd.as_raw_fd()),
            _ => Ok(()),
        };
        sent.and_then(|()| self.rewatch(connection, 0)).map_err(|e| format!("{}: {e}", self.describe(connection)))
    }

    /// The client's half of HTTP.
    fn serve_web(&mut self, connection: u32, what: u32) -> io::Result<()> {
        let (Some(web), end) = (&mut self.web, &mut self.ends[connection as usize][0]) else { return Ok(()) };
        let Some(fd) = end.fd.as_ref().map(AsRawFd::as_raw_fd).filter(|_| !end.ended) else { return Ok(()) };
        if what & libc::EPOLLERR as u32 != 0 {
            sys::take_error(fd)?;
        }
        let client = &mut web.clients[connection as usize];
        if what & OUT != 0 {
            web.connected[connection as usize] = true;
            client.send(fd)?;
        }
        let mut came = Vec::new();
        if what & (IN | libc::EPOLLHUP as u32) != 0 {
            client.read(fd, &mut came)?;
        }
        for one in came {
            let (Came::Begun(message) | Came::Complete(message)) = one;
            let now = sys::now();
            self.log.messages[message as usize].done_ns = Some(now);
            self.news = true;
            self.messages.complete(message, now);
        }
        self.rewatch(connection, 0)
    }

    fn serve(&mut self, connection: u32, side: usize, what: u32) -> io::Result<()> {
        if self.web.is_some() {
            return self.serve_web(connection, what);
        }
        let end = &mut self.ends[connection as usize][side];
        if end.ended {
            return Ok(());
        }
        if what & libc::EPOLLERR as u32 != 0
            && let Some(fd) = &end.fd
        {
            sys::take_error(fd.as_raw_fd())?;
        }
        if what & OUT != 0 {
            end.note_opening(side == 0 && !self.plan.connections[connection as usize].early);
            end.send(&self.told)?;
        }
        if what & (IN | libc::EPOLLHUP as u32) != 0 {
            let mut done = Vec::new();
            end.read(self.plan.read_lowat, &mut done)?;
            if !done.is_empty() {
                let now = sys::now();
                for message in done {
                    self.delivered(message, now);
                }
            }
        }
        self.rewatch(connection, side)
    }

    fn delivered(&mut self, message: u32, now: u64) {
        let flow = &self.plan.flows[self.plan.messages[message as usize].flow as usize];
        let sender = &self.ends[flow.connection as usize][usize::from(!flow.from_client)];
        let row = &mut self.log.messages[message as usize];
        row.done_ns = Some(now);
        self.news = true;
        row.timeouts = sender.timeouts().wrapping_sub(self.timeouts_before[message as usize]);
        self.messages.complete(message, now);
    }

    /// Waits for room in the send buffer exactly while something is left to send.
    fn rewatch(&mut self, connection: u32, side: usize) -> io::Result<()> {
        let end = &mut self.ends[connection as usize][side];
        let more = match &self.web {
            // Until it is connected there is more to do than to read.
            Some(web) => !web.connected[connection as usize] || web.clients[connection as usize].has_more(),
            None => end.has_more(),
        };
        let wanted = if more { IN | OUT } else { IN };
        match &end.fd {
            Some(fd) if end.watched != wanted => {
                end.watched = wanted;
                let token = u64::from(connection) * 2 + side as u64;
                self.poll.watch(fd.as_raw_fd(), wanted, token, false)
            }
            _ => Ok(()),
        }
    }

    /// A flow stops: what it has not sent is dropped with its connection.
    fn stop(&mut self, flow: u32) {
        let connection = self.plan.flows[flow as usize].connection;
        self.note(connection);
        for end in &mut self.ends[connection as usize] {
            end.ended = true;
            if let Some(fd) = end.fd.take() {
                sys::reset(fd);
            }
        }
        self.begun[connection as usize] = true;
    }

    /// Sends the datagrams that are due; when the next one is.
    fn send_datagrams(&mut self, start: u64, now: u64) -> Result<Option<u64>, String> {
        static ZEROS: [u8; 65_536] = [0; 65_536];
        let mut next: Option<u64> = None;
        for (plan, stream) in self.plan.datagrams.iter().zip(&mut self.streams) {
            let due = |sent: u64| {
                let after = u128::from(sent) * u128::from(plan.interval_ps) / 1000;
                start + plan.start_ns + after as u64
            };
            while due(stream.sent) <= now && due(stream.sent) < start + plan.stop_ns {
                let bytes = &ZEROS[..(plan.bytes as usize).min(ZEROS.len())];
                match sys::send_to(stream.from.as_raw_fd(), bytes, stream.address) {
                    // A full send buffer: as lost as in a full queue.
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                        return Err(format!("datagrams to {}: {error}", stream.address));
                    }
                    _ => stream.sent += 1,
                }
            }
            if due(stream.sent) < start + plan.stop_ns {
                next = Some(next.map_or(due(stream.sent), |n| n.min(due(stream.sent))));
            }
        }
        Ok(next)
    }

    /// What the sockets of a connection tell, into its flows' rows.
    fn note(&mut self, connection: u32) {
        let ends = &self.ends[connection as usize];
        for (side, flow) in self.flow_of[connection as usize].into_iter().enumerate() {
            let Some(flow) = flow else { continue };
            let row = &mut self.log.flows[flow as usize];
            if ends[side].ended {
                continue;
            }
            ends[side].write_row(side == 0, row);
        }
    }

    fn finish(mut self) -> Log {
        for connection in 0..self.plan.connections.len() as u32 {
            self.note(connection);
        }
        for (row, stream) in self.log.datagrams.iter_mut().zip(&mut self.streams) {
            stream.receive();
            (row.sent, row.received) = (stream.sent, stream.received);
        }
        for host in 0..self.plan.hosts.len() as u32 {
            // A namespace that others use, too, counts what they do.
            if !self.plan.hosts[host as usize].namespace.is_empty() && self.enter(host).is_ok() {
                let netstat = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
                self.log.timeouts.push(log::timeouts_of(&netstat));
            }
        }
        self.log
    }
}

fn tcp_socket(connection: &Connection, cc: &str) -> io::Result<OwnedFd> {
    let fd = sys::socket(libc::SOCK_STREAM)?;
    let on = 1_i32.to_ne_bytes();
    sys::set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &on)?;
    sys::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, cc.as_bytes())?;
    if connection.nodelay {
        sys::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &on)?;
    }
    Ok(fd)
}
