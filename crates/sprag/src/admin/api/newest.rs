//! What the catalog keeps in memory, in pages, the newest first; and what taking one of them back is asked with.

use serde::Deserialize;
use utoipa::ToSchema;

use super::model::Listing;
use super::params;
use crate::admin::problem::Problem;

/// Which page is wanted.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Where the page begins: `next` of the one before.
    pub(super) cursor: Option<String>,
    /// Rows of the page; 50 unless given.
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
}

/// What taking something back is asked with.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Plea {
    pub(super) by: Option<String>,
}

/// A page of entries. The newest has the greatest place.
pub(super) fn page<E, T>(
    entries: impl Iterator<Item = E>,
    wanted: &Wanted,
    place: impl Fn(&E) -> String,
    record: impl Fn(E) -> T,
) -> Result<Listing<T>, Problem> {
    let limit = params::rows(wanted.limit)? as usize;
    let placed = entries.map(|entry| (place(&entry), entry));
    let is_behind = |place: &String| wanted.cursor.as_ref().is_none_or(|cursor| place < cursor);
    let mut listed: Vec<(String, E)> = placed.filter(|(place, _)| is_behind(place)).collect();
    listed.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
    let next = listed.get(limit).and_then(|_| listed.get(limit - 1)).map(|(place, _)| place.clone());
    let items = listed.into_iter().take(limit).map(|(_, entry)| record(entry)).collect();
    Ok(Listing { items, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_and_the_last_one_says_so() {
        let listed = |limit, cursor: Option<&str>| {
            let wanted = Wanted { cursor: cursor.map(str::to_owned), limit };
            page([2, 5, 1, 4, 3].into_iter(), &wanted, |n: &i32| n.to_string(), |n| n)
                .map(|page| (page.items, page.next))
        };
        assert_eq!(listed(Some(2), None).unwrap(), (vec![5, 4], Some("4".to_owned())));
        assert_eq!(listed(Some(2), Some("4")).unwrap(), (vec![3, 2], Some("2".to_owned())));
        assert_eq!(listed(Some(2), Some("2")).unwrap(), (vec![1], None));
        assert_eq!(listed(Some(5), None).unwrap(), (vec![5, 4, 3, 2, 1], None));
        assert!(listed(Some(0), None).is_err());
    }
}
