//! The workload file: what the applications asked for and when, without what the network made of it.

use crate::WorkloadError;
use crate::waiting::{Company, Release, Rounds, TIMER};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// First field of every workload file.
pub(crate) const FORMAT: &str = "fanin-workload";
/// Version of the file format written and read here.
pub const WORKLOAD_VERSION: u32 = 2;
/// The oldest version that is read: without releases and rounds, so that each connection is replayed alone.
const OLDEST_VERSION: u32 = 1;

/// Traffic towards one aggregator, ready to be replayed over another network and another TCP.
///
/// Times are whole nanoseconds. Everything is seen from the aggregator: a *request* is what it sends, a *response* is what comes back,
/// whoever opened the connection. A replay sends a request when its [`Release`] says so; without one, `think_ns` after the response before
/// on the same connection. The server waits `service_ns` after it has the request, and sends the pieces. Absolute starts are for the first
/// message of a connection, for what is released by the clock, and for reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Always `fanin-workload`.
    pub format: String,
    /// See [`WORKLOAD_VERSION`].
    pub version: u32,
    /// Name of the capture it came from.
    pub source: String,
    /// Who receives.
    pub aggregator: IpAddr,
    /// Who sends, in order of first appearance.
    pub servers: Vec<IpAddr>,
    /// One per TCP connection with the aggregator that carried payload, in order of start.
    pub connections: Vec<ReplayConnection>,
    /// Requests that left together, in no order.
    #[serde(default)]
    pub rounds: Rounds,
    /// What was found about who waits for what.
    #[serde(default, rename = "groups", alias = "companies")]
    pub companies: Vec<Company>,
    /// Requests that were in flight with others on their connection and could not be told apart from these: each stands for one or several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u64,
    /// Its requests are those of the application's traces, and last as long as these say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced: bool,
}

/// Characters of a reason, at its beginning and at its end: serde's quotes a wrong value whole, and ends with the choices and the place.
const SHOWN: (usize, usize) = (200, 400);

/// A reason of bounded length, whatever a file has in it.
fn short(reason: &str) -> String {
    let (first, last) = SHOWN;
    let Some(extra) = reason.chars().count().checked_sub(first + last).filter(|&extra| extra > 0) else {
        return reason.to_owned();
    };
    let begin: String = reason.chars().take(first).collect();
    let end: String = reason.chars().skip(first + extra).collect();
    format!("{begin} ... {end}")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What one connection carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConnection {
    /// Index of the other side in [`Workload::servers`].
    pub server: u32,
    /// Number of the connection in the capture.
    pub connection: u32,
    /// First packet of the connection, from the start of the capture.
    pub start_ns: u64,
    /// The connection was opened within the capture, so a replay should open it too.
    pub opened: bool,
    /// Who opened it wrote as soon as it was open: a replay hands over the first message with the SYN, and the handshake's end sends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes_at_once: bool,
    /// The other side opened it: a client of the aggregator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upstream: bool,
    /// Where the aggregator never asked: so many writes of the other side ended on short segments with PSH. More than there are messages were written
    /// one behind the other, and are one message each with those before them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unasked_writes: u32,
    /// In order.
    pub messages: SmallVec<[Message; 1]>,
}

/// A request and the response to it, as the applications wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// When it began at the tap, from the start of the capture.
    pub start_ns: u64,
    /// How long the aggregator waited after it had the previous response; zero in the first message.
    pub think_ns: u64,
    /// What the aggregator sent; zero when the server spoke unasked.
    pub request_bytes: u64,
    /// How long the server took to begin its answer; without one, for how long the aggregator waited before it gave up.
    pub service_ns: u64,
    /// What the capture shows of that: at least and at most so long, where it lay in a queue or lost its first packets. For readers: a replay
    /// takes `service_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_between_ns: Option<(u64, u64)>,
    /// What the server sent in all.
    pub response_bytes: u64,
    /// How the server wrote it: at least one piece unless there was no response.
    pub pieces: SmallVec<[Piece; 1]>,
    /// From the request to the last byte of the response at the aggregator, in the capture. For readers: a replay takes its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// The aggregator closed the connection or reset the stream before it had all of the response, if any: `took_ns` is until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// The aggregator sent this request before it had all of the previous response.
    pub overlapped: bool,
    /// What it waited for; nothing: the response before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
}

impl Message {
    /// The server's time as [`Workload::otherwise`] has it.
    pub fn other_service_ns(&self) -> u64 {
        self.service_between_ns
            .map_or(self.service_ns, |(least, most)| least.saturating_add(most).saturating_sub(self.service_ns))
    }
}

/// Bytes written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// How long the application paused after the piece before had been delivered; zero for the first.
    pub pause_ns: u64,
    /// How much it wrote.
    pub bytes: u64,
    /// It went straight on: it paused after it had written the piece before, whether that was delivered or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub straight_on: bool,
}

impl Piece {
    /// All of a message.
    pub const fn whole(bytes: u64) -> Piece {
        Piece { pause_ns: 0, bytes, straight_on: false }
    }
}

impl Workload {
    /// The same traffic with the servers' times that the capture only bounds put elsewhere between these bounds, as far from the one as they are from
    /// the other: the capture cannot tell it from this one. None where it shows all of them.
    pub fn otherwise(&self) -> Option<Workload> {
        self.bounds_some().then(|| {
            let mut other = self.clone();
            let messages = other.connections.iter_mut().flat_map(|c| &mut c.messages);
            messages.for_each(|message| message.service_ns = message.other_service_ns());
            other
        })
    }

    /// The capture only bounds some server's time.
    pub fn bounds_some(&self) -> bool {
        let mut messages = self.connections.iter().flat_map(|c| &c.messages);
        messages.any(|message| message.other_service_ns() != message.service_ns)
    }

    /// The same traffic with timers that ask though the answer before is missing. None where no request leaves by a timer, and where the capture shows
    /// what its timers do: they were seen not to wait, or an answer took longer than the period and was waited for.
    pub fn unwaiting(&self) -> Option<Workload> {
        let mut other = self.clone();
        let mut moved = false;
        for company in &self.companies {
            let Some(timer) = company.released_by.iter().find(|edge| edge.event == TIMER) else { continue };
            let mine = || company.connections.iter().filter_map(|&c| self.connections.get(c as usize));
            let waited_long = |m: &Message| m.took_ns.is_some_and(|took| took >= timer.delay.median_ns);
            let told = |m: &Message| waited_long(m) || m.release == Some(Release::Clock { regardless: true });
            if mine().flat_map(|c| &c.messages).any(told) {
                continue;
            }
            for connection in company.connections.iter().map(|&c| c as usize) {
                let Some(connection) = other.connections.get_mut(connection) else { continue };
                for message in connection.messages.iter_mut().skip(1) {
                    if message.release == Some(Release::Clock { regardless: false }) {
                        message.release = Some(Release::Clock { regardless: true });
                        moved = true;
                    }
                }
            }
        }
        moved.then_some(other)
    }

    /// Reads a workload file and checks that it is consistent.
    ///
    /// # Errors
    /// When it cannot be read, is not a workload, or is of another version.
    pub fn read(path: &Path) -> Result<Workload, WorkloadError> {
        let text = crate::read_text(path).map_err(|source| WorkloadError::Read { path: path.to_path_buf(), source })?;
        Workload::parse(&text, path)
    }

    /// Reads the text of a workload file; `path` stands for the file in messages.
    ///
    /// # Errors
    /// When it is not a workload, or is of another version.
    pub fn parse(text: &str, path: &Path) -> Result<Workload, WorkloadError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let format = |reason: String| WorkloadError::Format { path: path.to_path_buf(), reason: short(&reason) };
        let head: Head = serde_json::from_str(text).map_err(|e| format(e.to_string()))?;
        if head.format != FORMAT {
            return Err(format(format!("its format is {:?}", head.format)));
        }
        if !(OLDEST_VERSION..=WORKLOAD_VERSION).contains(&head.version) {
            let (found, supported) = (head.version, WORKLOAD_VERSION);
            return Err(WorkloadError::Version { path: path.to_path_buf(), found, supported });
        }
        let mut workload: Workload = serde_json::from_str(text).map_err(|e| format(e.to_string()))?;
        workload.check().and_then(|()| workload.check_waiting()).map_err(format)?;
        workload.version = WORKLOAD_VERSION;
        Ok(workload)
    }

    fn check(&self) -> Result<(), String> {
        for (i, c) in self.connections.iter().enumerate() {
            if c.server as usize >= self.servers.len() {
                return Err(format!("connections[{i}].server is {} of {} servers", c.server, self.servers.len()));
            }
            for (j, m) in c.messages.iter().enumerate() {
                let written = m.pieces.iter().try_fold(0_u64, |sum, p| sum.checked_add(p.bytes));
                if written != Some(m.response_bytes) {
                    return Err(format!(
                        "connections[{i}].messages[{j}]: its pieces do not add up to its response_bytes"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Writes the workload as JSON. The file appears whole or not at all.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, path: &Path) -> Result<(), WorkloadError> {
        let failed = |source: std::io::Error| WorkloadError::Write { path: path.to_path_buf(), source };
        let mut text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let written =
            fs::File::create(&beside).and_then(|mut f| f.write_all(&text)).and_then(|()| fs::rename(&beside, path));
        written.map_err(|e| {
            // Best effort: the first error is the one to tell.
            let _ = fs::remove_file(&beside);
            failed(e)
        })
    }
}
