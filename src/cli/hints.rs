//! What to do about an error of the library, which knows no commands.

use runvault::store::StoreError;

/// The message of `error`, and what to do about it where a command helps.
pub(crate) fn with_hint(error: &StoreError) -> String {
    let hint = match error {
        StoreError::Missing { .. } => {
            "\"runvault init\" creates one, and so does \"runvault add --create\" with what it stores"
        }
        StoreError::Older { .. } => "\"runvault upgrade\" does that, and keeps a copy",
        StoreError::HardLinks { .. } => {
            "\"find DIR -samefile PATH\" lists the names; remove all but one while no program uses the vault, or copy the \
             file and name the copy"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {hint}")
}
