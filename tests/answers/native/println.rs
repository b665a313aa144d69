#[cfg(fixed)]
use std::io::Write;
fn main() {
    let size: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let lines = (400000.0 * size) as u64;
    #[cfg(fixed)]
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for i in 0..lines {
        #[cfg(not(fixed))]
        println!("{}", i);
        #[cfg(fixed)]
        writeln!(out, "{}", i).unwrap();
    }
}
