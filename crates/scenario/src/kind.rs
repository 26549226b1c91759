//! What a file looks to be, where it was given in place of another.

use crate::tree::Table;

/// A kind of file that users write.
struct FileKind {
    /// With its article.
    name: &'static str,
    /// Keys that only such a file has.
    own: &'static [&'static str],
    /// What takes it.
    taken_by: &'static str,
}

const KINDS: &[FileKind] = &[
    FileKind { name: "a scenario", own: &["topology", "workload", "measure"], taken_by: "`fanin run FILE`" },
    FileKind { name: "a rack", own: &["rack", "replay"], taken_by: "`fanin compare CAPTURE --rack FILE`" },
    FileKind { name: "a sweep", own: &["scenario", "axis", "sample"], taken_by: "`fanin sweep FILE`" },
];

/// One sentence where the table has nothing of what `keys` belong to, and something of another kind of file.
pub(crate) fn other_kind(table: &Table, keys: &[&str]) -> Option<String> {
    let is = |kind: &FileKind| kind.own.iter().any(|own| keys.contains(own));
    let has = |kind: &FileKind| kind.own.iter().any(|&own| table.get(own).is_some());
    let expected = KINDS.iter().find(|kind| is(kind))?;
    let found = KINDS.iter().find(|kind| has(kind)).filter(|_| !has(expected))?;
    Some(format!("it looks like {}, not {}: {} takes it", found.name, expected.name, found.taken_by))
}

/// The same for a file that is not text.
pub(crate) fn looks_like_a_capture(bytes: &[u8]) -> bool {
    // gzip (RFC 1952), pcapng's section header, pcap in either byte order, with microseconds or nanoseconds.
    let magics: [&[u8]; 6] = [
        &[0x1f, 0x8b],
        &[0x0a, 0x0d, 0x0d, 0x0a],
        &[0xd4, 0xc3, 0xb2, 0xa1],
        &[0xa1, 0xb2, 0xc3, 0xd4],
        &[0x4d, 0x3c, 0xb2, 0xa1],
        &[0xa1, 0xb2, 0x3c, 0x4d],
    ];
    magics.iter().any(|magic| bytes.starts_with(magic))
}
