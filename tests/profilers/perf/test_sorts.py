"""What a sort calls of the program is told from the sort itself, by the stacks below the line that sorts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.function_names import plain_symbol
from profkit.core.types import Place
from profkit.profilers.perf.sorts import sorts
from profkit.profilers.perf.source_lines import CodeAt, native_lines

MAIN, KEY, CLOSURE = (
    Place(function=name, file="shelf.rs", line=line)
    for name, line in (("main", 91), ("filing_key", 69), ("main::{{closure}}", 91))
)
CODES = {
    "filing_key": CodeAt(KEY, ("str::to_lowercase",)),
    "alloc::slice::<impl [T]>::sort_by_key::{{closure}}": CodeAt(CLOSURE),
    "core::slice::sort::stable::quicksort::quicksort": CodeAt(None),
    "main": CodeAt(MAIN, ("alloc::slice::<impl [T]>::sort_by_key",)),
    "by_name": CodeAt(KEY),
    "in_c": CodeAt(MAIN),
}
IN_KEY = (
    "malloc+0x10 (/lib/libc.so.6)",
    "filing_key+0x26 (/app/shelf)",
    "alloc::slice::<impl [T]>::sort_by_key::{{closure}}+0x19 (/app/shelf)",
    "core::slice::sort::stable::quicksort::quicksort+0x4ca (/app/shelf)",
    "main+0x2b2 (/app/shelf)",
)
IN_SORT = ("core::slice::sort::stable::quicksort::quicksort+0x4ca (/app/shelf)", "main+0x2b2 (/app/shelf)")
IN_C = (
    "__vfprintf_internal+0x10 (/lib/libc.so.6)",
    "by_name+0x26 (/app/shelf)",
    "msort_with_tmp+0x23c (inlined)",
    "__GI___qsort_r+0xb5 (/lib/libc.so.6)",
    "in_c+0x58 (/app/shelf)",
)
NO_SORT = ("malloc+0x10 (/lib/libc.so.6)", "filing_key+0x26 (/app/shelf)", "main+0x9 (/app/shelf)")


def sampled_lines(tmp_path: Path, *stacks: tuple[str, ...]):  # type: ignore[no-untyped-def]
    """Return what is sampled of stacks, innermost first, a millisecond each."""
    script = tmp_path / "perf.txt"
    samples = (
        f"shelf 1/1 1.{n:06d}: 1000000 cpu-clock: \n" + "".join(f"\t 1a266 {frame}\n" for frame in stack)
        for n, stack in enumerate(stacks)
    )
    script.write_text("\n".join(samples) + "\n")

    def resolve(program, keys):  # type: ignore[no-untyped-def]
        # The call that main makes without a sort has another address.
        return {key: CodeAt(MAIN) if key == ("main", 9) else CODES[key[0]] for key in keys if key[0] in CODES}

    return native_lines(script, Path("/app/shelf"), resolve)


def test_the_keys_of_a_sort_are_those_samples_that_it_calls_the_program_for(tmp_path: Path) -> None:
    sampled = sampled_lines(tmp_path, *[IN_KEY] * 8, *[IN_SORT] * 2, *[NO_SORT] * 5)
    [line] = sampled.outer
    assert (line.function, line.line) == ("main", 91)
    assert line.main_cpu == pytest.approx(0.010)
    assert line.own == pytest.approx(0.008)
    assert [(called.function, called.value) for called in line.callees] == [
        ("filing_key", pytest.approx(0.008))
    ]
    assert {"malloc", "str::to_lowercase"} <= {below.function for below in line.below}
    [key] = [one for one in sampled.lines if one.function == "filing_key"]
    assert [(within.line, within.value) for within in key.within] == [(91, pytest.approx(0.008))]


def test_a_comparison_that_qsort_calls_is_below_its_line(tmp_path: Path) -> None:
    [line] = sampled_lines(tmp_path, *[IN_C] * 4).outer
    assert [(called.function, called.value) for called in line.callees] == [("by_name", pytest.approx(0.004))]


def test_a_program_that_sorts_nothing_has_no_such_line(tmp_path: Path) -> None:
    assert not sampled_lines(tmp_path, *[NO_SORT] * 5).outer


@pytest.mark.parametrize(
    ("symbol", "is_sort"),
    [
        ("void std::__introsort_loop<Row*, long, Less>(Row*, Row*, long, Less)", True),
        ("std::list<int>::sort()", True),
        ("core::slice::sort::stable::drift::sort", True),
        ("alloc::slice::<impl [T]>::sort_by_cached_key", False),  # each key once, before the sort
        ("std::push_heap", False),
    ],
)
def test_functions_that_sort_are_known_by_their_symbols(symbol: str, is_sort: bool) -> None:
    assert sorts(symbol) == is_sort


def test_a_long_symbol_is_made_plain_once_for_all_samples_of_it(tmp_path: Path) -> None:
    """Of a program with maps of strings the first answer came after 24 s instead of 8: 75,000 times 0.14 ms."""
    long = "std::_Rb_tree<" + ", ".join("std::__cxx11::basic_string<char>" for _ in range(40)) + ">::_M_copy"
    stacks = [
        (*(f"{long}{n}+0x{at:x} (/app/shelf)" for n in range(20)), "main+0x9 (/app/shelf)")
        for at in range(16, 216)
    ]
    plain_symbol.cache_clear()
    assert sampled_lines(tmp_path, *stacks) is not None
    seen = plain_symbol.cache_info()
    assert seen.misses <= 21
    assert seen.hits > 100 * seen.misses
