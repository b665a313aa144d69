// The first free slot from a time on is looked for in a calendar.
use std::collections::BTreeMap;

fn first_from(slots: &BTreeMap<u64, u64>, time: u64) -> u64 {
    #[cfg(fixed)]
    let found = slots.range(time..).next();
    #[cfg(not(fixed))]
    let found = slots.iter().find(|(start, _)| **start >= time);
    found.map_or(0, |(_, room)| *room)
}

fn main() {
    let size: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let slots: BTreeMap<u64, u64> = (0..4000).map(|n| (n * 7919 % 100003, n)).collect();
    let sum: u64 = (0..(90000.0 * size) as u64).map(|n| first_from(&slots, n * 104729 % 100003)).sum();
    println!("{sum}");
}
