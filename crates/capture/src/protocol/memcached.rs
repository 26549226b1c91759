//! memcached: its text protocol with the meta commands (doc/protocol.txt), and its binary one.

use super::{Head, Part, SERVER};

/// The longest line: a get of thousands of keys.
const LINE: usize = 1 << 18;
/// What a request says of its responses: quiet commands, then `mn`, whose answer ends theirs.
const UNTIL_MN: u8 = 1;

const COMMANDS: [&[u8]; 26] = [
    b"get ",
    b"gets ",
    b"gat ",
    b"gats ",
    b"set ",
    b"add ",
    b"replace ",
    b"append ",
    b"prepend ",
    b"cas ",
    b"delete ",
    b"incr ",
    b"decr ",
    b"touch ",
    b"mg ",
    b"ms ",
    b"md ",
    b"ma ",
    b"me ",
    b"mn\r\n",
    b"version\r\n",
    b"stats",
    b"flush_all",
    b"verbosity ",
    b"quit\r\n",
    b"mn\n",
];
const ANSWERS: [&[u8]; 24] = [
    b"VALUE ",
    b"END\r\n",
    b"STORED\r\n",
    b"NOT_STORED\r\n",
    b"EXISTS\r\n",
    b"NOT_FOUND\r\n",
    b"DELETED\r\n",
    b"TOUCHED\r\n",
    b"OK\r\n",
    b"ERROR",
    b"CLIENT_ERROR ",
    b"SERVER_ERROR ",
    b"VERSION ",
    b"STAT ",
    b"VA ",
    b"HD",
    b"EN\r\n",
    b"NS",
    b"EX",
    b"NF",
    b"ME ",
    b"MN\r\n",
    b"RESET\r\n",
    b"OK ",
];

/// A message of `side` may begin so: one of its words, as far as the bytes go.
pub(super) fn begins(side: usize, bytes: &[u8]) -> bool {
    let words: &[&[u8]] = if side == SERVER { &ANSWERS } else { &COMMANDS };
    !bytes.is_empty() && words.iter().any(|word| bytes.iter().zip(*word).all(|(a, b)| a == b))
}

/// A client that speaks the text protocol: a whole command word.
pub(super) fn is_client(bytes: &[u8]) -> bool {
    COMMANDS.iter().any(|word| bytes.starts_with(word))
}

/// A client that speaks the binary protocol: a request header whose lengths fit.
pub(super) fn is_binary_client(bytes: &[u8]) -> bool {
    let Some(h) = bytes.first_chunk::<24>() else { return false };
    let (key, extras) = (u32::from(u16::from_be_bytes([h[2], h[3]])), u32::from(h[4]));
    let body = u32::from_be_bytes([h[8], h[9], h[10], h[11]]);
    h[0] == 0x80 && h[5] == 0 && key <= 250 && extras <= 24 && key + extras <= body && body < 1 << 27
}

pub(super) fn head(side: usize, bytes: &[u8], asked: Option<u8>) -> Head {
    let number = side == SERVER && bytes.first().is_some_and(u8::is_ascii_digit);
    if !number && !begins(side, bytes) {
        return Head::Bad;
    }
    let Some(line) = bytes.iter().take(LINE).position(|&b| b == b'\n') else {
        return if bytes.len() > LINE { Head::Bad } else { Head::More };
    };
    let words: Vec<&[u8]> =
        bytes[..line].trim_ascii_end().split(|&b| b == b' ').filter(|word| !word.is_empty()).take(8).collect();
    let line = line as u64 + 1;
    let data = |place: usize| -> Option<u64> {
        let count = std::str::from_utf8(words.get(place)?).ok()?.parse::<u32>().ok()?;
        // The data block ends with CR LF.
        Some(line + u64::from(count) + 2)
    };
    let whole = Part { ends: true, ..Part::message(0) };
    let unit = |bytes: u64, part: Part| Head::Unit { bytes, part };
    let Some(&word) = words.first() else { return Head::Bad };
    if side == SERVER {
        let last = Part { ends: asked != Some(UNTIL_MN), ..whole };
        return match word {
            b"VALUE" => data(3).map_or(Head::Bad, |bytes| unit(bytes, Part::message(0))),
            b"STAT" => unit(line, Part::message(0)),
            b"VA" => data(1).map_or(Head::Bad, |bytes| unit(bytes, last)),
            b"HD" | b"EN" | b"NS" | b"EX" | b"NF" | b"ME" => unit(line, last),
            _ => unit(line, whole),
        };
    }
    let silent = words.last() == Some(&b"noreply".as_slice());
    let quiet = || words.iter().skip(2).any(|word| *word == b"q");
    match word {
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
            data(4).map_or(Head::Bad, |bytes| unit(bytes, Part { ends: !silent, ..whole }))
        }
        b"ms" => data(2).map_or(Head::Bad, |bytes| unit(bytes, Part { ends: !quiet(), ..whole })),
        b"mg" | b"md" | b"ma" => unit(line, Part { ends: !quiet(), ..whole }),
        b"mn" => unit(line, Part { note: UNTIL_MN, ..whole }),
        b"quit" => unit(line, Part::CONTROL),
        _ => unit(line, Part { ends: !silent, ..whole }),
    }
}

/// The binary protocol: 24 bytes, then a body. What quiet commands ask is answered, if at all, before what the first loud one does.
pub(super) fn binary_head(side: usize, bytes: &[u8]) -> Head {
    let Some(h) = bytes.first_chunk::<24>() else { return Head::More };
    if h[0] != if side == SERVER { 0x81 } else { 0x80 } {
        return Head::Bad;
    }
    let body = u64::from(u32::from_be_bytes([h[8], h[9], h[10], h[11]]));
    let quiet = matches!(h[1], 0x09 | 0x0d | 0x11..=0x1a | 0x1e | 0x24);
    // Statistics come one by one, up to one without a name.
    let more = side == SERVER && h[1] == 0x10 && (h[2], h[3]) != (0, 0);
    Head::Unit { bytes: 24 + body, part: Part { ends: !quiet && !more, ..Part::message(0) } }
}
