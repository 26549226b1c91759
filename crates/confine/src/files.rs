//! Landlock: everything about files is refused but what [`Rights`] names.

use crate::{Error, Rights};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::PathBuf;

/// The newest form that is asked for; an older kernel gives what it has.
const FORM: ABI = ABI::V6;

/// Whether the kernel has Landlock at all.
pub fn restrict(rights: &Rights) -> Result<bool, Error> {
    let status = ruleset(rights).and_then(RulesetCreated::restrict_self).map_err(|e| Error(e.to_string()))?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn ruleset(rights: &Rights) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(FORM))?
        .handle_access(AccessNet::from_all(FORM))?
        .scope(Scope::from_all(FORM))?
        .create()?;
    allow(&mut rules, &rights.readable, AccessFs::from_read(FORM))?;
    allow(&mut rules, &rights.writable, AccessFs::from_all(FORM))?;
    Ok(rules)
}

fn allow(rules: &mut RulesetCreated, places: &[PathBuf], access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
    for place in places {
        // What does not exist needs no rule.
        let Ok(folder) = PathFd::new(place) else { continue };
        let access = if place.is_dir() { access } else { access & AccessFs::from_file(FORM) };
        rules.as_mut().add_rule(PathBeneath::new(folder, access))?;
    }
    Ok(())
}
