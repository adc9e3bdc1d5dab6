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
    /// What the program keeps there.
    pub content: AgentContent,
}

/// What a program keeps in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentContent {
    /// Sessions, each in a file.
    Sessions,
    /// Directories of projects with sessions, each in a file, and with other files of a session in a directory of its id.
    Projects,
    /// Other files of sessions: the name of the first directory, or of the file, begins with the id of the session.
    Files,
    /// Databases with sessions, in the directory itself.
    Databases,
}

use AgentContent::{Databases, Files, Projects, Sessions};

/// Where a program keeps its sessions.
struct AgentPlace {
    program: &'static str,
    /// The environment variable with the path of the directory of the program, if it has one.
    variable: Option<&'static str>,
    /// The directory of the program in the home directory of its user.
    default: &'static str,
    /// The directories in that.
    directories: &'static [(&'static str, AgentContent)],
}

const PLACES: [AgentPlace; 6] = [
    AgentPlace {
        program: "claude-code",
        variable: Some("CLAUDE_CONFIG_DIR"),
        default: ".claude",
        directories: &[
            ("projects", Projects),
            ("file-history", Files),
            ("session-env", Files),
            ("tasks", Files),
            ("todos", Files),
        ],
    },
    AgentPlace {
        program: "codex",
        variable: Some("CODEX_HOME"),
        default: ".codex",
        directories: &[("sessions", Sessions), ("archived_sessions", Sessions)],
    },
    AgentPlace {
        program: "gemini-cli",
        variable: Some("GEMINI_CLI_HOME"),
        default: "",
        directories: &[(".gemini/tmp", Sessions)],
    },
    AgentPlace {
        program: "opencode",
        variable: Some("XDG_DATA_HOME"),
        default: ".local/share",
        directories: &[("opencode", Databases), ("opencode/storage", Sessions)],
    },
    AgentPlace {
        program: "pi",
        variable: Some("PI_CODING_AGENT_DIR"),
        default: ".pi/agent",
        directories: &[("sessions", Sessions)],
    },
    AgentPlace {
        program: "pi",
        variable: Some("PI_CODING_AGENT_SESSION_DIR"),
        default: "",
        directories: &[("", Sessions)],
    },
];

/// Returns the directories in which programs keep sessions, by the environment that `variable` reads: those of Claude Code,
/// Codex, Gemini CLI, opencode and Pi, if the variable of the program or the `home` directory says where that is.
#[must_use]
pub fn agent_directories(
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<AgentDirectory> {
    let mut found = Vec::new();
    for AgentPlace { program, variable: name, default, directories } in PLACES {
        let stated = name.and_then(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A place without a directory in the home directory is used only if it is stated.
        let has_default = !default.is_empty() || directories != [("", Sessions)];
        let Some(root) = stated.or_else(|| home.filter(|_| has_default).map(|home| home.join(default)))
        else {
            continue;
        };
        let path = |within: &str| if within.is_empty() { root.clone() } else { root.join(within) };
        let directory = |(within, content): &(&str, AgentContent)| AgentDirectory {
            program,
            path: path(within),
            content: *content,
        };
        found.extend(directories.iter().map(directory));
    }
    found
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
            "claude-code /h/.claude/file-history",
            "claude-code /h/.claude/session-env",
            "claude-code /h/.claude/tasks",
            "claude-code /h/.claude/todos",
            "codex /h/.codex/sessions",
            "codex /h/.codex/archived_sessions",
            "gemini-cli /h/.gemini/tmp",
            "opencode /h/.local/share/opencode",
            "opencode /h/.local/share/opencode/storage",
            "pi /h/.pi/agent/sessions",
        ];
        assert_eq!(found(Some("/h"), &[]), of_home);
        assert_eq!(found(Some("/h"), &[("CODEX_HOME", "")]), of_home);
        let variables =
            [("CODEX_HOME", "/c"), ("GEMINI_CLI_HOME", "/g"), ("PI_CODING_AGENT_SESSION_DIR", "/p")];
        assert_eq!(
            found(None, &variables),
            ["codex /c/sessions", "codex /c/archived_sessions", "gemini-cli /g/.gemini/tmp", "pi /p"]
        );
        assert_eq!(found(None, &[]), [""; 0]);
    }
}
