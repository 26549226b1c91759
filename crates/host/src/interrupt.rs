//! Ctrl-C and its like: noted, so that a command can clean up behind it.

use crate::error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether a signal asked the command to end.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Notes signals from now on, and with `hold` the end of standard input too.
    pub fn noted(hold: bool) -> Result<Interrupt, Error> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, flag.clone()).map_err(Error::kernel("noting signals"))?;
        }
        if hold {
            let flag = flag.clone();
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                flag.store(true, Ordering::Relaxed);
            });
        }
        Ok(Interrupt(flag))
    }

    /// It came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps so long, or until it comes.
    pub fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.came() && Instant::now() < end {
            std::thread::sleep(end.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }
}
