//! What stands between the client and the server: processes that end with the bench.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often it is tried whether nginx listens.
const RETRY: Duration = Duration::from_millis(20);
const TRIES: usize = 500;

/// A reverse proxy that passes streams on as they arrive.
pub struct Nginx {
    child: Child,
    pub address: SocketAddr,
}

impl Nginx {
    /// Starts nginx. Without it, says what is skipped.
    pub fn start(directory: &Path, upstream: SocketAddr) -> Option<Self> {
        let Some(program) =
            ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists())
        else {
            eprintln!("skipped: nginx is not installed; there is no reverse proxy to compare with");
            return None;
        };
        let address = free_address();
        let path = directory.display();
        let config = format!(
            "daemon off; master_process off; pid {path}/nginx.pid; error_log {path}/nginx.log;
             events {{ worker_connections 64; }}
             http {{
               access_log off; client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};
               uwsgi_temp_path {path}; scgi_temp_path {path}; keepalive_requests 1000000; tcp_nodelay on;
               upstream models {{ server {upstream}; keepalive 8; }}
               server {{
                 listen {address};
                 location / {{
                   proxy_pass http://models; proxy_http_version 1.1; proxy_set_header Connection \"\";
                   proxy_buffering off; proxy_request_buffering off;
                 }}
               }}
             }}"
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, config).expect("written");
        let log = directory.join("nginx.start");
        let mut command = Command::new(program);
        command.arg("-e").arg(log).arg("-p").arg(directory).arg("-c").arg(file);
        let child = command.spawn().expect("nginx starts");
        let mut tries = (0..TRIES).map(|_| {
            thread::sleep(RETRY);
            TcpStream::connect(address)
        });
        assert!(tries.any(|tried| tried.is_ok()), "nginx does not listen");
        Some(Self { child, address })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// `runvault gateway`.
pub struct Gateway {
    child: Child,
    pub address: SocketAddr,
    /// It ends if its output is closed.
    _stdout: BufReader<std::process::ChildStdout>,
}

impl Gateway {
    pub fn start(vault: &Path, mode: &str, server: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runvault"));
        command.arg("--vault").arg(vault).args(["gateway", "--listen", "127.0.0.1:0", "--mode", mode]);
        command.args(["--upstream", server, "-q"]);
        if mode == "record" {
            command.arg("--create");
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a gateway");
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its address");
        let address = line.split('/').nth(2).expect("its address").parse().expect("an address");
        Self { child, address, _stdout: stdout }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended.
    let _ = child.kill();
    let _ = child.wait();
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}
