//! `fanin-testbed check | run CONFIG`: the switch of `fanin run --engine testbed`, which starts it. It ends when its standard input does, and
//! then writes its figures.

use fanin_testbed::config::Config;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check", config] => read(config).and_then(|c| fanin_testbed::check(&c)),
        ["run", config] => read(config).and_then(|c| run(&c)),
        _ => {
            eprintln!(
                "fanin-testbed: write fanin-testbed check|run CONFIG; `fanin run SCENARIO --engine testbed` does"
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fanin-testbed: {why}");
            ExitCode::from(1)
        }
    }
}

fn read(path: &str) -> Result<Config, String> {
    let text = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{path}: {e}"))
}

fn run(config: &Config) -> Result<(), String> {
    let figures = fanin_testbed::run(config, || println!("ready"))?;
    let text = serde_json::to_vec(&figures).map_err(|e| e.to_string())?;
    std::fs::write(&config.figures, text).map_err(|e| format!("{}: {e}", config.figures.display()))
}
