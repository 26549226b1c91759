//! The name that was probably meant.

/// The candidate closest to `name` by optimal string alignment (insertions, deletions, substitutions, swaps of neighbours; case ignored), if
/// it is close enough to have been meant or begins with `name`.
///
/// ```
/// assert_eq!(fanin_cc::nearest("buffre", ["rate", "buffer"]), Some("buffer"));
/// assert_eq!(fanin_cc::nearest("colour", ["rate", "buffer"]), None);
/// ```
#[cfg(feature = "std")]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let close = |distance: usize, candidate: &str| {
        distance < name.len() && distance <= (candidate.len().max(name.len()) / 3).max(1)
            || name.len() >= 3 && candidate.starts_with(name)
    };
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| close(distance, candidate))
        // Of equally close ones the first that was given.
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// A kernel is given no suggestions.
#[cfg(not(feature = "std"))]
pub fn nearest<'a>(_name: &str, _candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    None
}
