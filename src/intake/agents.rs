//! The directories in which agents keep their sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A directory in which a program keeps sessions of its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDirectory {
    /// The program, by the name of the dialect of its sessions, such as `claude-code`.
    pub program: &'static str,
    /// The path. The directory need not exist.
    pub path: PathBuf,
}

/// Where a program keeps its sessions.
struct AgentPlace {
    program: &'static str,
    /// The environment variable with the path of the directory of the program, if it has one.
    variable: Option<&'static str>,
    /// The directory of the program in the home directory of its user.
    default: &'static str,
    /// The directories with sessions in that.
    sessions: &'static [&'static str],
}

const PLACES: [AgentPlace; 5] = [
    AgentPlace {
        program: "claude-code",
        variable: Some("CLAUDE_CONFIG_DIR"),
        default: ".claude",
        sessions: &["projects"],
    },
    AgentPlace {
        program: "codex",
        variable: Some("CODEX_HOME"),
        default: ".codex",
        sessions: &["sessions", "archived_sessions"],
    },
    AgentPlace {
        program: "gemini-cli",
        variable: Some("GEMINI_CLI_HOME"),
        default: "",
        sessions: &[".gemini/tmp"],
    },
    AgentPlace {
        program: "pi",
        variable: Some("PI_CODING_AGENT_DIR"),
        default: ".pi/agent",
        sessions: &["sessions"],
    },
    AgentPlace { program: "pi", variable: Some("PI_CODING_AGENT_SESSION_DIR"), default: "", sessions: &[""] },
];

/// Returns the directories in which programs keep sessions, by the environment that `variable` reads: those of Claude Code,
/// Codex, Gemini CLI and Pi, if the variable of the program or the `home` directory says where that is.
#[must_use]
pub fn agent_directories(
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<AgentDirectory> {
    let mut directories = Vec::new();
    for AgentPlace { program, variable: name, default, sessions } in PLACES {
        let stated = name.and_then(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A place without a directory in the home directory is used only if it is stated.
        let has_default = !default.is_empty() || sessions != [""];
        let Some(root) = stated.or_else(|| home.filter(|_| has_default).map(|home| home.join(default)))
        else {
            continue;
        };
        let path = |within: &&str| if within.is_empty() { root.clone() } else { root.join(within) };
        directories.extend(sessions.iter().map(path).map(|path| AgentDirectory { program, path }));
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(home: Option<&str>, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let directories = agent_directories(home.map(Path::new), &variable);
        directories.into_iter().map(|it| format!("{} {}", it.program, it.path.display())).collect()
    }

    #[test]
    fn sessions_are_in_the_home_directory_unless_a_variable_says_where() {
        let of_home = [
            "claude-code /h/.claude/projects",
            "codex /h/.codex/sessions",
            "codex /h/.codex/archived_sessions",
            "gemini-cli /h/.gemini/tmp",
            "pi /h/.pi/agent/sessions",
        ];
        assert_eq!(found(Some("/h"), &[]), of_home);
        assert_eq!(found(Some("/h"), &[("CODEX_HOME", "")]), of_home);
        let variables =
            [("CLAUDE_CONFIG_DIR", "/c"), ("GEMINI_CLI_HOME", "/g"), ("PI_CODING_AGENT_SESSION_DIR", "/p")];
        assert_eq!(
            found(None, &variables),
            ["claude-code /c/projects", "gemini-cli /g/.gemini/tmp", "pi /p"]
        );
        assert_eq!(found(None, &[]), [""; 0]);
    }
}
