use std::io::Write;
fn main() {
    let size: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let n = (1500000.0 * size) as u64;
    let file = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
    #[cfg(not(fixed))]
    let mut out = file;
    #[cfg(fixed)]
    let mut out = std::io::BufWriter::new(file);
    for i in 0..n { writeln!(out, "{}", i).unwrap(); }
    println!("done");
}
