//! How soon each rule pages in an outage, how soon it is resolved, and how often it pages when there is none: ours, the one before it,
//! three in a row, and the SRE workbook's pairs, on the same canaries.
//!
//! `cargo bench --bench alerts` takes about two minutes; `-- --years N` sets the simulated years of each figure of false pages,
//! `-- --outages N` the outages of each figure of time, `-- --seed N` the seed. The same numbers give the same table.

#[path = "alerts/rules.rs"]
mod rules;
#[path = "alerts/table.rs"]
mod table;
#[path = "alerts/world.rs"]
mod world;

use anyhow::{Context, Result, bail, ensure};
use delivery_canary::alerts::simulate::{Evidence, Random, Rule};
use rules::{Earlier, ThreeInARow, Workbook};
use table::{Row, Size};
use world::{Blips, World};

const RATES: [f64; 3] = [0.0005, 0.0025, 0.01];
const BLIPS_A_YEAR: f64 = 48.0;
/// The share of stray failures that another follows at once, where noise is correlated.
const FOLLOWED: f64 = 0.2;

fn main() -> Result<()> {
    let mut size = Size { years: 500.0, outages: 2_000, seed: 1 };
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--years" => size.years = value.parse().context("--years: a number")?,
            "--outages" => size.outages = value.parse().context("--outages: a number")?,
            "--seed" => size.seed = value.parse().context("--seed: a number")?,
            other => bail!("there is no {other}; there are: --years, --outages, --seed"),
        }
    }
    ensure!(size.years > 0.0 && size.outages > 0, "--years and --outages must be above 0");
    table::head(&size);
    let mut all_ours = Vec::new();
    for (interval, confirms) in [(1, true), (5, true), (15, true), (5, false), (15, false)] {
        table::part(interval, confirms);
        for p0 in RATES {
            let world = World { interval, confirms, p0, followed: 0.0 };
            let ours = measure(world, &size, || Evidence::new(rules::weights(p0)));
            table::print("ours", &ours);
            all_ours.push((table::canaries(interval, confirms), ours));
            table::print("the one before", &measure(world, &size, || Earlier::new(p0)));
            if !confirms || interval == 1 {
                table::print("three in a row", &measure(world, &size, ThreeInARow::default));
                table::print("workbook's pairs", &measure(world, &size, || Workbook::new(p0, interval)));
            }
        }
    }
    table::kept(&all_ours);
    Ok(())
}

/// All figures of one rule in one world.
fn measure<R: Rule>(world: World, size: &Size, rule: impl Fn() -> R) -> Row {
    let correlated = World { followed: FOLLOWED, ..world };
    let false_pages = |world: World, minutes: f64| {
        let blips = Blips { a_year: BLIPS_A_YEAR, minutes };
        world.false_pages(rule(), &mut Random::new(size.seed), size.years, blips)
    };
    let outages = |share: f64, minutes: f64| {
        let mut random = Random::new(size.seed);
        (0..size.outages).map(|_| world.outage(rule(), &mut random, share, minutes)).collect::<Vec<_>>()
    };
    let ten_hours = [1.0, 0.5, 0.2].map(|share| outages(share, 600.0));
    let an_hour = outages(1.0, 60.0);
    Row {
        p0: world.p0,
        false_pages: [
            false_pages(world, 0.0),
            false_pages(world, 1.0),
            false_pages(world, 2.0),
            false_pages(world, 3.0),
            false_pages(world, 4.0),
            false_pages(correlated, 0.0),
            false_pages(correlated, 3.0),
        ]
        .map(|pages| table::Rate::of(pages, size.years)),
        pages: std::array::from_fn(|kept| {
            table::mean(ten_hours[2].iter().map(|o| f64::from(o.pages[kept]))) / 10.0
        }),
        found: ten_hours.map(|outages| table::Times::of(outages.iter().map(|o| o.found))),
        resolved: table::Times::of(an_hour.iter().filter(|o| o.found.is_some()).map(|o| o.resolved)),
        again: table::mean(an_hour.iter().map(|o| f64::from(u8::from(o.again)))),
    }
}
