"""Searches and sorts in C, C++ and Rust are told by their text, and nothing else that looks like them."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.native.code import native_constructs


def kinds(text: str, number: int) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in native_constructs(text.strip().splitlines(), number)]


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        ("for (const auto& p : products) if (p.sku == sku) return &p;", 1, "products"),
        (
            "for (const auto& p : store.products) {\n  if (p.sku == sku) {\n    return &p;\n  }\n}",
            2,
            "store.products",
        ),
        ("for (int i = 0; i < n; i++)\n  if (strcmp(t[i].name, name) == 0) return i;", 2, ""),
        ("for e in &self.items {\n  if e.id == id {\n    return Some(e);\n  }\n}", 1, "self.items"),
        ("let found = self.items.iter().find(|e| e.id == id);", 1, "self.items"),
        ("auto at = std::find_if(us.begin(), us.end(), [&](const User& u) { return u.id == id; });", 1, "us"),
    ],
)
def test_a_loop_that_compares_each_element_with_a_key_is_a_search(text: str, number: int, name: str) -> None:
    assert kinds(text, number) == [("search", name)]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("for (char c : text) if (c == '\\n') return 1;", 1),  # memchr, no table
        ("for (int i = 0; i < n; i++) { if (a[i] == 0) break; }", 1),  # the end of what is there
        ("for (auto& e : v) { sum += e.x; if (e.key == key) return sum; }", 1),  # it does more
        ("for (auto& e : v) if (e.low <= x) return &e;", 1),  # an order, no key
        ("for (Node* n = bucket; n; n = n->next) if (n->key == key) return n;", 1),  # a chain of a hash table
        ("for (auto& e : v) if (e.key == key) count++;", 1),  # it goes on
    ],
)
def test_what_is_no_search_of_a_key(text: str, number: int) -> None:
    assert not kinds(text, number)


GROWN = "while (read(x)) {\n  v.push_back(x);\n  std::sort(v.begin(), v.end());\n  sum += v[v.size() / 2];\n}"


def test_a_sort_in_the_loop_that_adds_to_it() -> None:
    assert kinds(GROWN, 3) == [("sorts", "v")]
    assert kinds("for x in xs {\n    v.push(x);\n    v.sort();\n}", 3) == [("sorts", "v")]
    method = "fn add(&mut self, x: u32) {\n    self.all.push(x);\n    self.all.sort();\n}"
    assert kinds(method, 3) == [("sorts", "self.all")]
    assert kinds(method.replace("self.all", "all"), 3) == []  # a local name
    assert kinds(method.replace("    self.all.push", "    self.all.clear();\n    self.all.push"), 4) == []


def test_what_is_sorted_once_or_made_anew_is_not_sorted_again() -> None:
    after = "while (read(x)) {\n  v.push_back(x);\n}\nstd::sort(v.begin(), v.end());"
    assert not kinds(after, 4)
    for line in ("std::vector<int> v;", "v.clear();"):
        assert not kinds(GROWN.replace("v.push", f"{line}\n  v.push", 1), 4)


POLLED = "for (;;) {\n  std::unique_lock<std::mutex> l(m);\n  if (!q.empty()) { take(q); }\n  else if (done) return;\n}"


def test_a_queue_that_is_polled_under_a_lock() -> None:
    assert kinds(POLLED, 2) == [("spin", "lock")]
    assert not kinds(POLLED.replace("if (!q", "cv.wait(l, has);\n  if (!q"), 2)
    assert not kinds(POLLED.replace("for (;;)", "for (int i = 0; i < n; i++)"), 2)
