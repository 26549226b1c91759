//! One type per dimension: [`Time`], [`Duration`], [`Bytes`], [`Rate`].
//!
//! Only physics compiles: `Bytes / Rate` is a [`Duration`], `Time - Time` is a [`Duration`], and there is no `Time + Time`.
//! Time is counted in whole picoseconds (one byte at 400 Gb/s lasts 20 ps; 64 bits last 213 days), so a run is exact and the
//! same on every machine. Decimal prefixes are powers of ten and binary ones are spelled (`KB` = 1000 B, `KiB` = 1024 B).
//!
//! ```
//! use fanin_units::{Bytes, Rate, Duration};
//! assert_eq!(Bytes::new(1500) / Rate::gbps(1), Duration::us(12));
//! assert_eq!("50us".parse::<Duration>().unwrap(), Duration::us(50));
//! ```

#![no_std]

extern crate alloc;

mod bytes;
mod parse;
mod rate;
mod setting;
mod time;

pub use bytes::Bytes;
pub use parse::{ParseUnitError, QueueLimit};
pub use rate::Rate;
pub use setting::{Args, Domain, Preset, Profile, Setting, SettingError, Value};
pub use time::{Duration, MaybeTime, Time};
