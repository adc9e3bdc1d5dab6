//! Restriction of queries to reading.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The pragmas that only describe the schema.
const PRAGMAS: [&str; 3] = ["table_info", "table_xinfo", "table_list"];

/// Functions with effects beyond the vault or within the process. Each is already disabled in another way.
const FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// The prefix of the functions on which computed views are built.
const OWN: &str = "runvault_";

/// An authorizer that restricts the queries of one connection, and records what it rejected.
#[derive(Clone, Default)]
pub(super) struct QueryAuthorizer(Arc<Mutex<Option<String>>>);

impl QueryAuthorizer {
    /// Allows only reading on `connection` from now on.
    pub(super) fn watch(&self, connection: &Connection) -> rusqlite::Result<()> {
        let guard = self.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let Some(refusal) = refusal(&context) else { return Authorization::Allow };
            guard.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(refusal);
            Authorization::Deny
        }))
    }

    /// Takes the first rejection since the last call.
    pub(super) fn refused(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Returns why an action is rejected, or `None` if it is allowed.
fn refusal(context: &AuthContext<'_>) -> Option<String> {
    Some(match &context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if function_name.starts_with(OWN) => {
            // These implement runvault's own views and are not available to other queries.
            context.accessor.is_none().then(|| format!("the function {function_name} is not allowed"))?
        }
        AuthAction::Function { function_name } if !is_one_of(&FUNCTIONS, function_name) => return None,
        AuthAction::Pragma { pragma_name, .. } if is_one_of(&PRAGMAS, pragma_name) => return None,
        AuthAction::Function { function_name } => format!("the function {function_name} is not allowed"),
        AuthAction::Pragma { pragma_name, .. } => {
            format!("PRAGMA {pragma_name} is not allowed, only {} are", PRAGMAS.join(", "))
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            "other databases cannot be attached".to_owned()
        }
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            "transactions are not allowed, because each query sees one snapshot of the vault".to_owned()
        }
        _ => "the statement would change data".to_owned(),
    })
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
