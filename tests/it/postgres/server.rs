//! Servers of single tests, which kill them or need settings of their own.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use tempfile::TempDir;

use crate::sandbox::repository;

/// A server that ends with the test.
pub(crate) struct Server {
    directory: TempDir,
    settings: Vec<String>,
    /// The address of a vault on its socket.
    pub(crate) address: String,
}

impl Server {
    /// Starts a server, or says why it is skipped: the tests have no database, or the programs of a server are missing.
    pub(crate) fn start(settings: &[String]) -> Option<Self> {
        static SKIPPED: Once = Once::new();
        let has_programs =
            std::env::var_os("RUNVAULT_CI_POSTGRES").is_some() || Path::new("/usr/lib/postgresql").is_dir();
        let has_engine = std::env::var_os("RUNVAULT_TEST_ENGINE").is_some_and(|url| !url.is_empty());
        if !has_engine || !has_programs {
            SKIPPED.call_once(|| {
                let reason = b"skipped: servers of single tests; RUNVAULT_TEST_ENGINE names no database, or there is no \
                               /usr/lib/postgresql\n";
                let _ = std::io::stderr().write_all(reason);
            });
            return None;
        }
        let directory = tempfile::Builder::new().prefix("rv").tempdir_in("/tmp").unwrap();
        // The user of the server looks into it.
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let mut server = Self { directory, settings: settings.to_vec(), address: String::new() };
        let url = server.control("start");
        url.trim().clone_into(&mut server.address);
        Some(server)
    }

    /// Starts a server with the files that `copy` makes in its directory. `address` is that of the vault, in which
    /// `DIRECTORY` stands for the directory of the socket.
    pub(crate) fn start_from(copy: impl FnOnce(&Path), address: &str) -> Self {
        let directory = private_directory();
        let mut server = Self { directory, settings: Vec::new(), address: String::new() };
        std::fs::create_dir(server.directory()).unwrap();
        copy(Path::new(&server.directory()));
        // As root, the tests run the server as another user.
        let _ = Command::new("chown").args(["-R", "postgres", &server.directory()]).output();
        server.control("start");
        server.address = address.replace("DIRECTORY", &server.directory());
        server
    }

    /// The directory with the socket and the files of the server.
    pub(crate) fn directory(&self) -> String {
        self.directory.path().join("s").to_str().unwrap().to_owned()
    }

    /// Ends the server without warning.
    pub(crate) fn kill(&self) {
        self.control("kill");
    }

    /// Starts the server again after [`Server::kill`].
    pub(crate) fn start_again(&self) {
        self.control("start");
    }

    fn control(&self, action: &str) -> String {
        let mut command = Command::new(repository(".ci/postgres"));
        command.arg(action).arg(self.directory());
        if action == "start" {
            command.args(&self.settings);
        }
        // The server must not keep the pipe of the test open.
        let output = command
            .stderr(std::fs::File::create(self.directory.path().join("log")).unwrap())
            .output()
            .unwrap();
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap();
        assert!(output.status.success(), "{action}: {log}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control("stop");
    }
}

/// Returns a directory with a short path, which the user of the server can look into.
fn private_directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("rv").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    directory
}
