fn unique(values: &[u32]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    for value in values {
        if !seen.contains(value) { // answer
            seen.push(*value);
        }
    }
    seen
}
fn main() {
    let values: Vec<u32> = (0..60_000u32).map(|n| n.wrapping_mul(2_654_435_761) % 70_000).collect();
    println!("{}", unique(&values).len());
}
