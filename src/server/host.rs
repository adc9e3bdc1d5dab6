//! The hosts that requests may name, for all servers of the program.

use std::net::{IpAddr, SocketAddr};

/// Returns whether `host` names the address at which the server listens. A page of another site can give a name of its
/// own this address and then read the response; it cannot do so with a numeric address or `localhost`.
pub(crate) fn is_own(host: &str, listening: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, parsed(port)),
        _ => (host, Some(80)),
    };
    if port != Some(listening.port()) {
        return false;
    }
    let is_any = listening.ip().is_unspecified();
    if name.eq_ignore_ascii_case("localhost") {
        return is_any || listening.ip().is_loopback();
    }
    let numeric = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    numeric.parse::<IpAddr>().is_ok_and(|address| is_any || address == listening.ip())
}

/// Returns the number of a port: digits alone, unlike what numbers are parsed from.
fn parsed(port: &str) -> Option<u16> {
    port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_address_is_served() {
        let own = |host: &str, listening: &str| is_own(host, listening.parse().unwrap());
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080"] {
            assert!(own(host, "127.0.0.1:8080"), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "127.0.0.1.evil.example:8080",
            "127.0.0.2:8080",
            "[::1]:8080",
            "",
            ":8080",
            "localhost:8080:8080",
            "127.0.0.1:+8080",
            "user@localhost:8080",
        ] {
            assert!(!own(host, "127.0.0.1:8080"), "{host}");
        }
        assert!(own("[::1]:9", "[::1]:9") && own("localhost", "127.0.0.1:80"));
        assert!(own("192.0.2.7:9", "0.0.0.0:9") && !own("vault.example:9", "0.0.0.0:9"));
        assert!(!own("localhost:9", "192.0.2.7:9"));
    }
}
