//! Listeners: each on a port that others know, and no two on one.

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
        if address.port() == 0 {
            let message = format!("{name} listens on port 0: the system gives it another one at each start");
            let hint = format!(
                "nobody would find it there; write a port that is known, such as `{}:9464`",
                host(*address)
            );
            report.fault(at, message, hint);
        }
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

/// The host of an address, as it is written before a port.
fn host(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// Whether two addresses can't be listened on at a time. Of port 0 there is a free one for each.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    // `::ffff:127.0.0.1` is 127.0.0.1, by another name.
    let (left, right) = (a.ip().to_canonical(), b.ip().to_canonical());
    let takes = |one: IpAddr, other: IpAddr| {
        // `::` takes the port of both families, `0.0.0.0` that of its own.
        one == other || one == ANY_V6 || (one.is_unspecified() && other.is_ipv4())
    };
    a.port() == b.port() && a.port() != 0 && (takes(left, right) || takes(right, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_are_one_where_the_system_would_say_that_it_is_taken() {
        let hosts =
            ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"];
        // A line a host, a column a host: `x` where both can't be listened on at a time.
        let table = [
            "x.x.xxx", // 127.0.0.1
            ".xx.x.x", // 127.0.0.2
            "xxx.xxx", // 0.0.0.0
            "...xx..", // ::1
            "xxxxxxx", // ::
            "x.x.xxx", // ::ffff:127.0.0.1
            "xxx.xxx", // ::ffff:0.0.0.0
        ];
        for (host, line) in hosts.iter().zip(table) {
            for (other, expected) in hosts.iter().zip(line.chars()) {
                let at = |host: &str, port: u16| format!("{host}:{port}").parse().expect("an address");
                let one_port = overlap(at(host, 9000), at(other, 9000));
                assert_eq!(one_port, expected == 'x', "{host} beside {other}");
                assert!(!overlap(at(host, 9000), at(other, 9001)), "{host} beside {other} on another port");
                assert!(!overlap(at(host, 0), at(other, 0)), "{host} beside {other} on a free port each");
            }
        }
    }
}
