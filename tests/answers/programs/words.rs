use std::collections::HashMap;
fn count(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split(' ') {
        *counts.entry(word.to_string()).or_insert(0) += 1; // answer
    }
    counts
}
fn main() {
    let text: String = (0..600_000).map(|n| format!("word{} ", n * 7919 % 20_000)).collect();
    let mut total = 0;
    for _ in 0..10 {
        total += count(&text).len();
    }
    println!("{}", total);
}
