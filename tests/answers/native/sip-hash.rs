// Counts how often each small number comes.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
struct Multiply(u64);
impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(*byte as u32);
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(5) ^ value as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(fixed)]
type Counts = HashMap<u32, u32, BuildHasherDefault<Multiply>>;
#[cfg(not(fixed))]
type Counts = HashMap<u32, u32>;

fn count(ids: &[u32]) -> Counts {
    let mut counts = Counts::default();
    for id in ids {
        *counts.entry(*id).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let scale: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let _ = BuildHasherDefault::<Multiply>::default();
    let mut x: u64 = 1;
    let mut ids = Vec::new();
    for _ in 0..200_000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ids.push((x >> 52) as u32);
    }
    let mut different = 0;
    for _ in 0..(1000.0 * scale) as usize {
        different += count(&ids).len();
    }
    println!("{different}");
}
