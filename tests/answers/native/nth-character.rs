fn main() {
    let size: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let s: String = "abcdefghij".repeat((18000.0 * size) as usize);
    let n = s.chars().count();
    let mut t = 0u64;
    #[cfg(not(fixed))]
    for i in 0..n { t += s.chars().nth(i).unwrap() as u64; }
    #[cfg(fixed)]
    for c in s.chars() { t += c as u64; }
    println!("{} {}", t, n);
}
