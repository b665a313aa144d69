"""What functions and loops of C, C++ and Rust do is told by their text, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.native.code import native_constructs
from profkit.analysis.stacks.native.functions import function_around
from profkit.core.types import Construct, ConstructKind


def found(text: str, number: int, kind: ConstructKind) -> list[Construct]:
    return [one for one in native_constructs(text.strip().split("\n"), number) if one.kind == kind]


PATHS = """
static long ways(const Grid &grid, int x, int y) {
    if (x == 0 || y == 0)
        return grid.at(x, y);
    long left = ways(grid, x - 1, y);
    return left + ways(grid, x, y - 1);
}
"""
SACK = """
fn best(items: &[Item], room: usize) -> u64 {
    match items.split_first() {
        None => 0,
        Some((item, rest)) => {
            let without = best(rest, room);
            if item.weight > room { without } else { without.max(item.value + best(rest, room - item.weight)) }
        }
    }
}
"""


@pytest.mark.parametrize(
    ("text", "number", "how"),
    [
        (PATHS, 4, "(grid, x, y - 1) and (grid, x - 1, y)"),
        (SACK, 5, "(rest, room) and (rest, room - item.weight)"),
        ("long f(int n) {\n  return n < 2 ? n : f(n - 1) + f(n - 2);\n}", 2, "(n - 2) and (n - 1)"),
        (
            "fn d(a: &[u8], b: &[u8]) -> u8 {\n  d(&a[1..], b).min(d(a, &b[1..]))\n}",
            2,
            "(&a[1..], b) and (a, &b[1..])",
        ),
    ],
)
def test_a_recursion_whose_calls_lead_to_the_same_arguments(text: str, number: int, how: str) -> None:
    calls = [set(one.how.split(" and ")) for one in found(text, number, "overlaps")]
    assert calls == [set(how.split(" and "))]


@pytest.mark.parametrize(
    "text",
    [
        "long sum(const Node *n) {\n  return n ? n->value + sum(n->left) + sum(n->right) : 0;\n}",
        "void sort(int lo, int hi) {\n  int p = split(lo, hi);\n  sort(lo, p - 1); sort(p + 1, hi);\n}",
        "long moves(int n, int a, int b, int c) {\n  return moves(n - 1, a, c, b) + 1 + moves(n - 1, c, b, a);\n}",
        # They keep what they found, or have an effect.
        "long f(int n) {\n  static long known[90];\n  return known[n] = f(n - 1) + f(n - 2);\n}",
        "long f(int n) {\n  if (memo.count(n)) return memo[n];\n  return f(n - 1) + f(n - 2);\n}",
        "int place(Board &board, int row) {\n  return place(board, row + 1) + place(board, row + 2);\n}",
        "int count(int row) {\n  ++visited;\n  return count(row + 1) + count(row + 2);\n}",
        "long f(int n) {\n  return n < 2 ? 1 : n * f(n - 1);\n}",
    ],
)
def test_a_recursion_over_different_arguments_or_with_effects_is_none(text: str) -> None:
    assert not found(text, 2, "overlaps")


MEDIAN = """
static double middle(const std::vector<double> &all, std::size_t width) {
    std::vector<double> window(all.begin(), all.begin() + width);
    std::sort(window.begin(), window.end());
    return window[width / 2];
}
"""


@pytest.mark.parametrize(
    ("text", "number", "said"),
    [
        (MEDIAN, 3, True),
        (MEDIAN.replace("window[width / 2]", "(window[n / 2] + window[n / 2 - 1]) / 2"), 3, True),
        (
            "fn middle(all: &[f64]) -> f64 {\n  let mut v = all.to_vec();\n  v.sort_unstable();\n  v[v.len() / 2]\n}",
            3,
            True,
        ),
        (MEDIAN.replace("return window[width / 2]", "return spread(window)"), 3, False),
        (MEDIAN.replace("window[width / 2]", "mean(window[width / 2..])"), 3, False),
        (MEDIAN.replace("return window", "for (int i = 0; i < n; ++i) sum += window"), 3, False),
        (MEDIAN.replace("std::vector<double> window(", "std::vector<double> &window = same("), 3, False),
        (
            MEDIAN.replace("return window[width / 2]", "return window[k] + window[j] + window[i]"),
            3,
            False,
        ),
    ],
)
def test_a_sort_for_one_element(text: str, number: int, said: bool) -> None:
    assert bool(found(text, number, "one-of-sorted")) == said


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("values.iter().sum::<f64>()", True),
        ("for value in &values {\n    add(value);\n}", True),
        ("values.iter().sum::<f64>() / values.len() as f64", False),
        ("mean(&values)", False),
        ("values[3]", False),
    ],
)
def test_a_vec_that_is_collected_to_be_gone_through_once(use: str, said: bool) -> None:
    collects = "let values: Vec<f64> = all.iter().map(|r| r.value).collect();"
    text = f"fn mean(all: &[Row]) -> f64 {{\n    {collects}\n    {use}\n}}"
    assert bool(found(text, 2, "collected")) == said


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        ('void f(const Trip &t) {\n  minutes[t.from + "|" + t.to] += 1;\n}', 2, "minutes"),
        (
            'fn f() {\n  let key = format!("{}:{}", a, b);\n  *stock.entry(key).or_insert(0) += 1;\n}',
            3,
            "stock",
        ),
        ('void f() {\n  std::string key = a + ":" + b;\n  auto at = seats.find(key);\n}', 2, "seats"),
        ("void f() {\n  total[name] += 1;\n}", 2, None),
        ("void f() {\n  total[row + column] += 1;\n}", 2, None),  # a number
        ('void f() {\n  std::string line = a + ":" + b;\n  out.push_back(line);\n}', 2, None),
        ("void f() {\n  auto next = i + 1;\n  total[next] += 1;\n}", 2, None),
    ],
)
def test_a_text_that_is_made_as_a_key(text: str, number: int, name: str | None) -> None:
    assert [one.name for one in found(text, number, "key-made")] == ([name] if name else [])


@pytest.mark.parametrize(
    ("size", "said"),
    [("(h->count + 1) * sizeof *h->all", True), ("strlen(name) + 1", False), ("(h->used + 1) * 8", False)],
)
def test_an_array_that_grows_by_one(size: str, said: bool) -> None:
    text = (
        f"void add(struct h *h, int x) {{\n  h->all = realloc(h->all, {size});\n  h->all[h->count++] = x;\n}}"
    )
    assert bool(found(text, 2, "grows-by-one")) == said


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("Quote quote", True),
        ("std::vector<double> prices", True),
        ("const Quote &quote", False),
        ("Quote *quote", False),
        ("double quote", False),
        ("std::string_view quote", False),
        ("std::uint32_t quote", False),
    ],
)
def test_a_call_that_takes_its_argument_by_value(parameter: str, said: bool) -> None:
    text = (
        f"static double spread({parameter}) {{\n  return 1;\n}}\nint main() {{\n  sum += spread(quote);\n}}"
    )
    assert [one.name for one in found(text, 5, "by-value")] == (["spread"] if said else [])


CELLS = """
static long near(const std::vector<Star> &stars, double distance) {
    for (std::size_t i = 0; i < stars.size(); ++i)
        for (std::size_t j = i + 1; j < stars.size(); ++j) {
            double dx = stars[i].x - stars[j].x, dy = stars[i].y - stars[j].y;
            if (dx * dx + dy * dy < distance * distance)
                ++pairs;
        }
}
"""
BUBBLE = """
static void rank(struct runner *all, int count) {
    for (int i = 0; i < count; i++)
        for (int j = 0; j + 1 < count - i; j++)
            if (all[j].time > all[j + 1].time)
                swap(&all[j], &all[j + 1]);
}
"""
TABLE = """
static std::array<std::uint32_t, 256> table_of() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t n = 0; n < 256; ++n) {
        std::uint32_t value = n;
        for (int bit = 0; bit < 8; ++bit)
            value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
        table[n] = value;
    }
    return table;
}
"""
SELECTION = """
void rank(std::vector<Item> &all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t least = i;
        for (std::size_t j = i + 1; j < all.size(); ++j)
            if (all[j].price < all[least].price)
                least = j;
        std::swap(all[i], all[least]);
    }
}
"""
RUST_TABLE = """
fn table_of() -> [u32; 256] {
    let mut table = [0u32; 256];
    for n in 0..256 {
        let mut value = n as u32;
        for _ in 0..8 {
            value = if value & 1 == 1 { 0xEDB88320 ^ (value >> 1) } else { value >> 1 };
        }
        table[n] = value;
    }
    table
}
"""
RUST_CELLS = """
fn near(points: &[(f64, f64)], limit: f64) -> usize {
    for i in 0..points.len() {
        for j in (i + 1)..points.len() {
            let (dx, dy) = (points[i].0 - points[j].0, points[i].1 - points[j].1);
            if dx * dx + dy * dy < limit * limit {
                count += 1;
            }
        }
    }
    count
}
"""
SLOTS = """
bool has(std::uint64_t id) const {
    std::size_t at = place(id);
    while (slots_[at].state != Slot::empty) {
        if (slots_[at].id == id)
            return true;
        at = (at + 1) & mask_;
    }
    return false;
}
"""


@pytest.mark.parametrize(
    ("kind", "text", "number", "said"),
    [
        ("all-pairs", CELLS, 5, ("stars", "distance * distance")),
        ("all-pairs", CELLS.replace("if (dx * dx + dy * dy < distance", "if (dx * dx + dy * dy !="), 5, None),
        ("all-pairs", CELLS.replace("j < stars.size()", "j < 27"), 5, None),  # a few neighbours
        ("sorts-by-hand", BUBBLE, 4, ("all", "exchanging neighbours")),
        ("sorts-by-hand", BUBBLE.replace("swap(&all[j], &all[j + 1])", "rises++"), 4, None),
        ("sorts-by-hand", SELECTION, 5, ("all", "looking for the smallest of the rest each time")),
        ("sorts-by-hand", SELECTION.replace("std::swap(all[i], all[least])", "best[i] = least"), 5, None),
        ("all-pairs", RUST_CELLS, 5, ("points", "limit * limit")),
        ("always-the-same", RUST_TABLE, 6, ("table_of", "2048")),
        ("next-node", "void f(node *n) {\n  for (; n; n = n->next)\n    sum += n->value;\n}", 3, ("n", "next")),
        ("next-node", "void f(node *n) {\n  while (n)\n    n = key < n->key ? n->left : n->right;\n}", 3, None),
        ("probes", SLOTS, 4, ("slots_", "at")),
        ("probes", SLOTS.replace("at = (at + 1) & mask_", "at = next(at)"), 4, None),
        ("always-the-same", TABLE, 6, ("table_of", "2048")),
        ("always-the-same", TABLE.replace("table_of()", "table_of(int at)").replace("= n;", "= n + at;"), 6, None),
        ("always-the-same", TABLE.replace("n < 256", "n < size"), 4, None),
        ("always-the-same", TABLE.replace("0xEDB88320u", "polynomial_"), 6, None),
        ("always-the-same", TABLE.replace("table_of", "main"), 6, None),
    ],
)  # fmt: skip
def test_what_loops_do(kind: ConstructKind, text: str, number: int, said: tuple[str, str] | None) -> None:
    assert [(one.name, one.how) for one in found(text, number, kind)] == ([said] if said else [])


def test_values_that_a_loop_around_moves_on_are_not_the_same_each_time() -> None:
    text = """
static void steps(int count) {
    double cells[64] = {1};
    for (int step = 0; step < count; ++step)
        for (int n = 0; n < 64; ++n)
            cells[n] = cells[n] * 0.5;
}
"""
    assert not found(text, 5, "always-the-same")
    assert not found(text.replace("= cells[n] * 0.5", "= step"), 5, "always-the-same")
    assert found(text.replace("cells[n] * 0.5", "0.5 * n"), 5, "always-the-same")


def test_the_function_around_a_line_has_a_head_with_a_type() -> None:
    text = SACK.strip().split("\n")
    function = function_around(text, 4)
    assert function is not None
    assert (function.name, function.first, len(function.parameters)) == ("best", 0, 2)
    for head in (
        "if (ready(x))",
        "  } else if (ready(x))",
        "  else if (ready(x))",
        "  for j in (i + 1)..points.len()",
    ):
        assert function_around([f"{head} {{", "    y = 1;", "  }"], 1) is None
