//! What a query may do: read.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Those that only tell what there is.
const PRAGMAS: [&str; 3] = ["table_info", "table_xinfo", "table_list"];

/// Functions that reach beyond the vault or into the process. They are off already, one by one, for reasons of their own.
const FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// How the names of the functions begin that computed views are made of.
const OWN: &str = "runvault_";

/// Watches over the queries of one connection, and remembers what it refused.
#[derive(Clone, Default)]
pub(super) struct Guard(Arc<Mutex<Option<String>>>);

impl Guard {
    /// Allows nothing but reading on `connection` from now on.
    pub(super) fn watch(&self, connection: &Connection) -> rusqlite::Result<()> {
        let guard = self.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let Some(refusal) = refusal(&context) else { return Authorization::Allow };
            guard.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(refusal);
            Authorization::Deny
        }))
    }

    /// What was refused since this was asked last.
    pub(super) fn refused(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Why an action is refused; nothing if it is not.
fn refusal(context: &AuthContext<'_>) -> Option<String> {
    Some(match &context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } if function_name.starts_with(OWN) => {
            // Those are what our views are made of, and for nobody else.
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
            "transactions are not for queries, each of which sees one state of the vault".to_owned()
        }
        _ => "this would change something".to_owned(),
    })
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
