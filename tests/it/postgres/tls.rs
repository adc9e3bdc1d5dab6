//! Encrypted connections to a server.

use std::path::{Path, PathBuf};
use std::process::Command;

use runvault::Vault;

use super::CLOCK;
use super::server::Server;
use crate::sandbox::{Ran, Sandbox};

/// The name in the certificate of the server.
const NAME: &str = "db.example";

/// A server that accepts only encrypted connections on its address, with a certificate of an authority of its own.
struct Encrypted {
    server: Server,
    sandbox: Sandbox,
    host: String,
}

impl Encrypted {
    fn start() -> Option<Self> {
        let sandbox = Sandbox::at(CLOCK);
        let directory = tempfile::Builder::new().prefix("rv").tempdir_in("/tmp").unwrap();
        if !make_certificates(directory.path()) {
            let reason = b"skipped: encrypted connections; there is no openssl\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), reason);
            return None;
        }
        for authority in ["ca", "other"] {
            let name = format!("{authority}.pem");
            std::fs::copy(directory.path().join(&name), sandbox.path(&name)).unwrap();
        }
        let process = std::process::id();
        // All addresses of the loopback device are there, and a port that is not the default one would need more settings.
        let host =
            format!("127.{}.{}.{}", 1 + process % 250, process / 250 % 250, 1 + process / 62_500 % 250);
        let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let server = Server::start(&[
            format!("listen_addresses={host}"),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", file("server.pem")),
            format!("ssl_key_file={}", file("server.key")),
        ])?;
        // The server has read them.
        drop(directory);
        let rules = "local all all trust\nhostssl all all 127.0.0.0/8 trust\n";
        std::fs::write(PathBuf::from(server.directory()).join("data/pg_hba.conf"), rules).unwrap();
        let mut client = postgres::Client::connect(&server.address, postgres::NoTls).unwrap();
        client.execute("SELECT pg_reload_conf()", &[]).unwrap();
        Vault::create(Path::new(&server.address)).unwrap();
        Some(Self { server, sandbox, host })
    }

    /// Runs a command on the vault, which is known as `name`, with these parameters.
    fn run(&self, name: &str, parameters: &str) -> Ran {
        let address = self.server.address.replace(
            &format!("host={}", self.server.directory()),
            &format!("host={name}&hostaddr={}", self.host),
        );
        let mut command = self.sandbox.command();
        command.env("RUNVAULT_VAULT", format!("{address}&{parameters}"));
        command.args(["log", "--head"]).output().unwrap().into()
    }

    /// The same, with certificates of this authority trusted.
    fn run_trusting(&self, authority: &str, name: &str, mode: &str) -> Ran {
        let file = self.sandbox.path(&format!("{authority}.pem"));
        self.run(name, &format!("sslmode={mode}&sslrootcert={}", file.display()))
    }
}

/// Makes two authorities, `ca` and `other`, and a certificate of the first for [`NAME`]. Returns false without `openssl`.
fn make_certificates(directory: &Path) -> bool {
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(directory.join("names"), format!("subjectAltName=DNS:{NAME}\n")).unwrap();
    let name = format!("/CN={NAME}");
    let steps: [&[&str]; 4] = [
        &[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj",
            "/CN=ca",
        ],
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "x.key",
            "-out",
            "other.pem",
            "-subj",
            "/CN=other",
        ],
        &[
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
            "-subj",
            &name,
        ],
        &[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "server.pem",
            "-extfile",
            "names",
        ],
    ];
    for arguments in steps {
        let Ok(ran) = Command::new("openssl").args(arguments).current_dir(directory).output() else {
            return false;
        };
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    // The server refuses keys that others can read, and runs as another user if the tests run as root.
    let _ = Command::new("chown").args(["postgres", "server.key"]).current_dir(directory).output();
    std::fs::set_permissions(
        directory.join("server.key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    true
}

#[test]
fn connections_are_encrypted_and_verified_as_the_address_says() {
    let Some(encrypted) = Encrypted::start() else { return };
    encrypted.run(NAME, "sslmode=prefer").expect(0);
    encrypted.run("another.example", "").expect(0);
    let refused = encrypted.run(NAME, "sslmode=disable").expect(2);
    assert!(refused.stderr.contains("no encryption"), "{}", refused.stderr);
    for mode in ["require", "verify-full"] {
        encrypted.run_trusting("ca", NAME, mode).expect(0);
        for (ran, reason) in [
            (encrypted.run_trusting("other", NAME, mode), "UnknownIssuer"),
            (encrypted.run(NAME, &format!("sslmode={mode}")), "UnknownIssuer"),
            (encrypted.run_trusting("ca", "another.example", mode), "not valid for name"),
        ] {
            let ran = ran.expect(2);
            assert!(ran.stderr.contains("certificate"), "{mode}: {}", ran.stderr);
            assert!(ran.stderr.contains(reason), "{mode}: {}", ran.stderr);
        }
    }
}
