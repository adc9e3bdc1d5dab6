//! The names of attributes in arguments and columns: those with an order can be named without their unit.

use runvault::artifact::AttributeInfo;
use runvault::formats;

/// The endings of attribute names that are a unit, which commands need not repeat.
const UNITS: [&str; 3] = ["_at", "_ms", "_usd"];

/// The attributes that have an order, except the creation time.
pub(crate) fn ordered() -> impl Iterator<Item = AttributeInfo> {
    let is_own = |info: &AttributeInfo| *info == AttributeInfo::CREATED_AT;
    formats::attributes().into_iter().filter(move |info| info.values.is_ordered() && !is_own(info))
}

/// Returns the name of an attribute without its unit; `None` if it has none, or no order.
pub(crate) fn short_name(info: AttributeInfo) -> Option<&'static str> {
    let short = UNITS.into_iter().find_map(|unit| info.name.strip_suffix(unit));
    short.filter(|_| info.values.is_ordered() && info != AttributeInfo::CREATED_AT)
}

/// Returns the attributes with short names.
pub(crate) fn shortened() -> impl Iterator<Item = (&'static str, AttributeInfo)> {
    ordered().filter_map(|info| Some((short_name(info)?, info)))
}
