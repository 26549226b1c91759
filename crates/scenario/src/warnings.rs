//! What is allowed but probably not meant.

use fanin_cc::registry;
use fanin_sim::spec::Spec;
use fanin_sim::stack::EcnMode;

/// One sentence for each setting that makes no difference to what runs.
///
/// ```
/// use fanin_scenario::{Scenario, warnings};
/// let text = "[topology]\nmark = \"20p\"\n[[workload]]\nkind = \"incast\"\nbytes = \"64KB\"";
/// let spec = Scenario::from_text(text, "example").unwrap().plan(1).unwrap();
/// assert_eq!(warnings(&spec), ["switches mark, but no flow is ECN-capable: `newreno` without `stack.ecn` ignores marks"]);
/// ```
pub fn warnings(spec: &Spec) -> Vec<String> {
    let marking = spec.links.iter().any(|l| l.queue.mark_above.is_some() || l.queue.discipline == "red");
    // Transports that no flow uses (a default that every workload replaces) do not count.
    let in_use: Vec<_> = (0_u32..)
        .zip(&spec.transports)
        .filter(|(n, _)| spec.flows.iter().any(|f| f.transport == *n))
        .map(|(_, t)| t)
        .collect();
    let needs = |cc: &str| registry::needs_switch(cc).unwrap_or(false);
    let mut found: Vec<String> = Vec::new();
    if !marking {
        for transport in in_use.iter().filter(|t| needs(&t.cc)) {
            found.push(format!("`{}` needs switches that mark, and none does: set `topology.mark`", transport.cc));
        }
    }
    let step = spec.links.iter().any(|l| l.queue.mark_above.is_some());
    if step && !in_use.is_empty() && in_use.iter().all(|t| !needs(&t.cc) && t.stack.ecn == EcnMode::Off) {
        let names: Vec<String> = in_use.iter().map(|t| format!("`{}`", t.cc)).collect();
        let ignore = if names.len() == 1 { "ignores" } else { "ignore" };
        found.push(format!(
            "switches mark, but no flow is ECN-capable: {} without `stack.ecn` {ignore} marks",
            names.join(", ")
        ));
    }
    found.dedup();
    found
}
