use std::fmt::Write;
fn main() {
    let size: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let n = (9000000.0 * size) as u64;
    let mut s = String::new();
    for i in 0..n {
        #[cfg(not(fixed))]
        s.push_str(&format!("{},", i));
        #[cfg(fixed)]
        write!(s, "{},", i).unwrap();
    }
    println!("{}", s.len());
}
