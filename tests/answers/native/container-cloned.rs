// Adds up what orders cost.
#[derive(Clone)]
struct Order {
    name: String,
    lines: Vec<String>,
    total: f64,
}

fn discounted(orders: &[Order]) -> f64 {
    #[cfg(fixed)]
    let mine = orders;
    #[cfg(not(fixed))]
    let mine = orders.to_vec();
    mine.iter().map(|one| if one.lines.len() > 3 { one.total * 0.9 } else { one.total }).sum()
}

fn main() {
    let scale: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut orders = Vec::new();
    for n in 0..2000 {
        let lines = (0..5).map(|k| format!("line {k} of {n}")).collect();
        orders.push(Order { name: format!("order {n}"), lines, total: n as f64 });
    }
    let mut sum = 0.0;
    for _ in 0..(1_500.0 * scale) as usize {
        sum += discounted(&orders);
    }
    println!("{sum:.1} {}", orders[3].name);
}
