//! A twin's parameters: the `const volatile` numbers of its object, found by their symbols and written before it is loaded.

use super::error::Error;
use object::{Object, ObjectSection, ObjectSymbol};

/// One parameter.
pub struct Param {
    pub name: String,
    pub value: u32,
    /// Place in `.rodata`.
    pub offset: usize,
}

/// The parameters of a compiled twin, in the order of the file.
pub fn of(bytes: &[u8]) -> Result<Vec<Param>, Error> {
    let broken = |why: String| Error::Refused { name: "its object".to_owned(), why };
    let file = object::File::parse(bytes).map_err(|e| broken(e.to_string()))?;
    let Some(section) = file.section_by_name(".rodata") else { return Ok(Vec::new()) };
    let data = section.data().map_err(|e| broken(e.to_string()))?;
    let mut found = Vec::new();
    for symbol in file.symbols() {
        // Tables are larger and static.
        if symbol.section_index() != Some(section.index()) || symbol.size() != 4 || !symbol.is_global() {
            continue;
        }
        let offset = symbol.address() as usize;
        let Some(value) = data.get(offset..offset + 4) else { continue };
        let value = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        found.push(Param { name: symbol.name().unwrap_or_default().to_owned(), value, offset });
    }
    found.sort_by_key(|p| p.offset);
    Ok(found)
}

/// `rodata` with the settings written into it.
pub fn write(rodata: &mut [u8], params: &[Param], settings: &[(String, u32)], twin: &str) -> Result<(), Error> {
    for (name, value) in settings {
        let Some(param) = params.iter().find(|p| p.name == *name) else {
            let known: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
            return Err(Error::BadParam(format!("{twin} has no parameter `{name}`; it has {}", known.join(", "))));
        };
        rodata[param.offset..param.offset + 4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}
