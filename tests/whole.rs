//! Tests of the whole program: the monitor as its users run it, beside a simulated service with faults on demand.

mod audit;
mod blind;
mod books;
mod by_hand;
mod clocks;
mod commands;
mod common;
mod crash;
mod dashboards;
mod elsewhere;
mod followed;
mod journey;
mod kinds;
mod outages;
mod paged;
mod settling;
mod trials;
