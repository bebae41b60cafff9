//! The page of metrics at a thousand routes.

use crate::{
    load::client,
    page_bench::{Bench, config, full},
    table::{self, quantile},
};
use anyhow::Result;
use axum::{Router, routing::get};
use delivery_canary::exposition::server::{MetricsServer, render};
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

const ROUTES: usize = 1_000;
const TIMES: usize = 30;

/// Measures making the page, and scraping it, beside a bare handler that holds the finished page.
pub async fn run() -> Result<()> {
    let names: Vec<String> = (0..ROUTES).map(|number| format!("route-{number}")).collect();
    let config = config(&names.iter().map(String::as_str).collect::<Vec<_>>(), "acme");
    let bench = Bench::new(&config);
    bench.cell.publish(full(&config));
    let page = render(&bench.registry)?;
    let series = page.lines().filter(|line| !line.starts_with('#')).count();

    let mut rendered = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        render(&bench.registry)?;
        rendered.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let server = MetricsServer::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), bench.registry.clone())?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(server.run(std::future::pending()));
    let scraped = scrapes(address).await?;
    serving.abort();

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let held = page.clone();
    let router = Router::new().route("/metrics", get(move || std::future::ready(held.clone())));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let bare = scrapes(address).await?;
    serving.abort();

    let row = |what: &str, mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let at = |share| format!("{:.1} ms", quantile(&values, share));
        vec![what.to_owned(), at(0.0), at(0.5), at(1.0)]
    };
    table::print(
        &["", "least", "median", "most"],
        &[
            row("bare axum handler with the finished page", bare),
            row("the page made, without HTTP", rendered),
            row("the page made and scraped", scraped),
        ],
    );
    println!("  {ROUTES} routes, {} bytes, {series} series, each of them {TIMES} times", page.len());
    Ok(())
}

async fn scrapes(address: SocketAddr) -> Result<Vec<f64>> {
    let client = client(Duration::from_secs(30))?;
    let url = format!("http://{address}/metrics");
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        client.get(&url).send().await?.error_for_status()?.bytes().await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}
