use crate::json::reader::Limits;

/// A content whose digest artifacts of a kind state, such as a state. Kinds declare their contents as constants.
#[derive(Clone, Copy, Debug)]
pub struct MentionedContent {
    /// The group of the roles under which artifacts mention the digest.
    pub group: &'static str,
    /// The noun for it, such as `reasoning state`.
    pub noun: &'static str,
    /// Returns why bytes with the digest are not such a content as the format defines it, as the end of a sentence that
    /// begins with their name; `None` if they are.
    pub defect: fn(&[u8], &Limits) -> Option<String>,
}
