//! Prints what one pass over a capture finds: `cargo run --release -p fanin-capture --example summary -- FILE [GAP | floor=GAP | --json]`.

use fanin_capture::{Gap, Options, analyse};
use std::{env, ops::ControlFlow, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let Some(path) = args.next().map(PathBuf::from) else {
        eprintln!("usage: summary FILE [GAP, as 1ms | floor=GAP | --json]");
        return ExitCode::from(2);
    };
    let second = args.next();
    let json = second.as_deref() == Some("--json");
    let floor = second.as_deref().and_then(|s| s.strip_prefix("floor="));
    let gap = match floor.or(second.as_deref()).filter(|_| !json).map(str::parse) {
        None => Gap::default(),
        Some(Ok(gap)) if floor.is_none() => Gap::Fixed(gap),
        Some(Ok(floor)) => Gap::SmoothedRtt { floor },
        Some(Err(e)) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    match analyse(&path, &Options { gap, ..Options::default() }, &mut |_| ControlFlow::Continue(())) {
        Ok(a) if json => match serde_json::to_string(&a) {
            Ok(text) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("{e}");
                ExitCode::FAILURE
            }
        },
        Ok(a) => {
            let s = &a.summary;
            println!(
                "{}: {}, {} packets, {} TCP, {} connections, {} B, {:.6} s; {} turns, {} trains, {} bursts",
                s.file,
                s.format,
                s.packets,
                s.tcp_packets,
                s.connections,
                s.payload_bytes,
                s.duration_ns as f64 / 1e9,
                a.turns.len(),
                a.trains.len(),
                a.bursts.len()
            );
            for w in &a.warnings {
                println!("  note: {w}");
            }
            if let Some(p) = &a.partial {
                println!("  partial: {p}");
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
