//! Background customers: they submit at a steady rate over the same HTTP interface as anybody.

use super::{
    options::{TrafficOptions, TrafficRoute},
    statistics::Statistics,
};
use rand::Rng;
use reqwest::Client;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::MissedTickBehavior};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// Submissions under way at a time; what comes due beyond that is skipped and counted.
const MOST_UNDER_WAY: usize = 32;

/// The customers.
pub struct Traffic {
    pub options: TrafficOptions,
    pub client: Client,
    pub acceptance: SocketAddr,
    pub sink: SocketAddr,
    pub statistics: Arc<Statistics>,
}

impl Traffic {
    /// Submits until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / self.options.per_second));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (places, under_way) = (Arc::new(Semaphore::new(MOST_UNDER_WAY)), TaskTracker::new());
        for route in self.options.routes.iter().cycle() {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                self.statistics.add(|totals| totals.traffic_skipped += 1);
                continue;
            };
            let request = self.request(route);
            under_way.spawn(async move {
                // Whether a customer is served is what the monitor is to find out; nothing is done about it here.
                let _ = request.send().await;
                drop(place);
            });
        }
        under_way.close();
        under_way.wait().await;
    }

    fn request(&self, route: &TrafficRoute) -> reqwest::RequestBuilder {
        let mut random = rand::rng();
        let kind = if random.random_bool(self.options.dead_recipients) { "rejected-" } else { "" };
        let (who, cents) = (random.random_range(0..100_000_u32), random.random_range(100..1_000_000_u32));
        let body = serde_json::json!({
            "recipient": format!("{kind}customer-{who}@customers.example.test"),
            "template": "receipt",
            "amount": format!("{}.{:02} EUR", cents / 100, cents % 100),
            "channel": route.channel,
            "route": route.name,
            "callback_url": format!("http://{}/customers", self.sink),
        });
        self.client
            .post(format!("http://{}/v1/notifications", self.acceptance))
            .header("idempotency-key", Uuid::now_v7().to_string())
            .json(&body)
    }
}
