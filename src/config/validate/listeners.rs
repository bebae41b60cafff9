//! Listeners: no two on one port.

use crate::config::{
    draft::Draft,
    receipt::Receiver,
    report::{At, Report},
};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(super) fn check(draft: &Draft, report: &mut Report) {
    let top = At::root();
    let mut all: Vec<(String, SocketAddr, At)> = Vec::new();
    if let Some(listeners) = &draft.listeners {
        for (name, address) in [("metrics", listeners.metrics), ("health", listeners.health)] {
            all.push((format!("`listeners.{name}`"), address, top.keys(&["listeners", name])));
        }
    }
    for (name, receiver) in &draft.receivers {
        if let Some(Receiver::Webhook(webhook)) = receiver {
            let at = top.keys(&["receivers", name, "webhook", "listen"]);
            all.push((format!("the receiver `{name}`"), webhook.listen, at));
        }
    }
    for (n, (name, address, at)) in all.iter().enumerate() {
        for (other_name, other, other_at) in &all[..n] {
            if overlap(*address, *other) {
                // The fault belongs where somebody wrote something, not at a default.
                let (at, first, second) = if report.is_written(at) || !report.is_written(other_at) {
                    (at, name, other_name)
                } else {
                    (other_at, other_name, name)
                };
                let message = format!("{first} and {second} listen on one port, {}", address.port());
                report.fault(at, message, "give each listener a port of its own");
            }
        }
    }
}

/// Whether two addresses can't be listened on at a time. Port 0 asks the system for a free one each time.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let (left, right) = (a.ip(), b.ip());
    a.port() == b.port()
        && a.port() != 0
        && (left == right
            // `[::]` takes the port of both families.
            || left == ANY_V6
            || right == ANY_V6
            || ((left.is_unspecified() || right.is_unspecified()) && left.is_ipv4() == right.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_overlap_with_what_they_take() {
        let overlaps = |a: &str, b: &str| {
            let (a, b) = (a.parse().expect(a), b.parse().expect(b));
            assert_eq!(overlap(a, b), overlap(b, a));
            overlap(a, b)
        };
        assert!(overlaps("127.0.0.1:1", "127.0.0.1:1"));
        assert!(overlaps("0.0.0.0:1", "127.0.0.1:1"));
        assert!(overlaps("[::]:1", "127.0.0.1:1"));
        assert!(overlaps("[::]:1", "[::1]:1"));
        assert!(!overlaps("0.0.0.0:1", "[::1]:1"));
        assert!(!overlaps("127.0.0.1:1", "127.0.0.2:1"));
        assert!(!overlaps("127.0.0.1:1", "127.0.0.1:2"));
        assert!(!overlaps("127.0.0.1:0", "127.0.0.1:0"));
    }
}
