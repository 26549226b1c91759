//! TCPRand in front of an application: `LD_PRELOAD=libfanin_tcprand.so nginx ...`.
//!
//! What the application writes to a TCP socket is cut into records of random size, each sent with `MSG_EOR`: the kernel then never puts
//! two of them into one segment, with or without segmentation offload, and a retransmission keeps the boundary. One record is one segment.
//!
//! *Source*: "Randomizing TCP Payload Size for TCP Fairness in Data Center Networks" (Computer Networks 129), section 4. The sizes are those of
//! the simulator's `tcprand` ([`fanin_cc::model::tcprand`]).
//!
//! *Departures*:
//! - A size is drawn when the application writes, not when the segment leaves. The adaptive rule therefore keeps little unsent
//!   (`TCP_NOTSENT_LOWAT`, two segments).
//! - The adaptive rule needs where CUBIC's epoch began and its last maximum, which Linux does not tell. It takes ssthresh for the first and
//!   ssthresh / 0.7 for the second (`TCP_INFO`; the kernel's beta is 717/1024): right after a reduction, except where fast convergence lowered
//!   the maximum. Before the first reduction sizes are full.
//! - The end of a write leaves as a shorter segment where nothing else waits to be sent. Where the next write comes first, the record goes on
//!   with it, as the simulator draws a size when a segment leaves.
//!
//! | variable | what it sets |
//! |---|---|
//! | `FANIN_TCPRAND_MIN` | rMin in bytes; unset: the adaptive rule |
//! | `FANIN_TCPRAND_SIGMA2`, `_MU`, `_V_TAU`, `_V_OMEGA`, `_THETA`, `_NO_RISE` | the adaptive rule's parameters: `rand_sigma2` and so on of the simulator's `tcprand` |
//! | `FANIN_TCPRAND_SEED` | the random sizes; unset: 1 |

mod preload;
pub mod records;
pub mod settings;
mod socket;
