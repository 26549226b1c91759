//! `fanin-player PLAN LOG`: plays the workload of a plan file on the sockets of this machine.

use fanin_player::{plan::Plan, play};
use std::process::ExitCode;

fn main() -> ExitCode {
    fanin_player::sys::end_with_parent();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [plan, log] = arguments.as_slice() else {
        eprintln!("fanin-player: write fanin-player PLAN LOG");
        return ExitCode::from(2);
    };
    match run(plan, log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fanin-player: {why}");
            ExitCode::from(1)
        }
    }
}

fn run(plan: &str, log: &str) -> Result<(), String> {
    let text = std::fs::read(plan).map_err(|e| format!("{plan}: {e}"))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|e| format!("{plan}: {e}"))?;
    let seen = play(&plan, &mut |_| {})?;
    let text = serde_json::to_vec(&seen).map_err(|e| format!("{log}: {e}"))?;
    std::fs::write(log, text).map_err(|e| format!("{log}: {e}"))
}
