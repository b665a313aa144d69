"""What cProfile's calls and the interpreter's own functions tell of a program. Values are of real programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.insights import find_insights
from profkit.core.types import CodeLine, Frame, Hotspot, Insight, Profile
from tests import documents

PACKAGES = "/venv/lib/python3.11/site-packages/"


def call(
    caller: str, callee: str, seconds: float, calls: int, library: str = "built-in", file: str | None = "p.py"
) -> Hotspot:
    """Calls from a function of the program, or from a package where `file` is its file."""
    inside = library in ("built-in", "standard library", "own")
    called = "p.py" if library == "own" else None if inside else f"{PACKAGES}{library}/x.py"
    of_package = file.removeprefix(PACKAGES).partition("/")[0] if file and file.startswith(PACKAGES) else None
    frame = Frame(callee, None if library == "own" else library, called)
    return Hotspot(caller, seconds, seconds, calls, file, 4, of_package, callee=frame)


def insights(total: float, *calls: Hotspot, profiles: tuple[Profile, ...] = ()) -> dict[str, Insight]:
    made = Profile("own functions and what they call", "s", total, calls, "program-calls")
    found = find_insights(replace(documents.empty(), profiles=(made, *profiles)))
    return {insight.rule: insight for insight in found}


APPLY = call("main", "apply", 3.883, 1, "pandas")
APPLIED = call("apply_series_generator", "total", 2.805, 150_000, "own", f"{PACKAGES}pandas/core/apply.py")
ELEMENT = call("total", "__getitem__", 2.687, 349_846, "pandas")
POP = call("drain", "<method 'pop' of 'list' objects>", 7.867, 250_000)


def test_a_function_applied_to_each_row_is_named_with_its_caller() -> None:
    found = insights(4.622, APPLY, APPLIED, ELEMENT)
    assert "Replace apply in main" in found["pandas-apply"].title
    assert "total 150000 times" in found["pandas-apply"].evidence
    assert found["pandas-apply"].where.line == 4
    assert "pandas-elements" not in found  # the same time, told once
    assert "heavy-library-call" not in found


def test_a_function_applied_to_a_few_columns_is_none_of_it() -> None:
    assert "pandas-apply" not in insights(4.6, APPLY, replace(APPLIED, calls=12))


@pytest.mark.parametrize(
    ("rule", "total", "calls"),
    [
        ("linear-list", 8.122, POP),
        ("pandas-elements", 3.4, call("summarise", "iterrows", 2.1, 60_001, "pandas")),
        ("one-row-at-a-time", 35.51, call("<genexpr>", "predict", 27.487, 600, "sklearn")),
        (
            "repeated-search",
            5.141,
            call("mean_distance", "argmap_shortest_path_length_26", 4.442, 39_999, "networkx"),
        ),
        ("repeated-pattern", 3.0, call("count_words", "compile", 2.6, 30_000, "standard library")),
    ],
)
def test_a_slow_construct_is_named_with_its_function(rule: str, total: float, calls: Hotspot) -> None:
    found = insights(total, calls)
    assert calls.function == found[rule].where.function
    gain = found[rule].gain
    assert gain is not None
    assert calls.total is not None
    assert gain.at_most == pytest.approx(calls.total / total)


@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        ("linear-list", replace(POP, total=0.02)),  # from the end: 80 ns each
        ("linear-list", replace(POP, calls=20)),
        ("pandas-elements", call("main", "__getitem__", 4.0, 3, "pandas")),
        ("one-row-at-a-time", call("main", "predict", 6.0, 1, "sklearn")),
        ("repeated-search", call("main", "single_source_shortest_path_length", 5.0, 200, "networkx")),
        ("repeated-pattern", call("<module>", "compile", 2.6, 12, "standard library")),
        ("heavy-library-call", call("<module>", "<built-in method builtins.exec>", 8.0, 1)),
        ("heavy-library-call", call("main", "<method 'acquire' of '_thread.lock' objects>", 8.0, 4)),
    ],
)
def test_a_few_calls_cheap_ones_and_waits_are_no_construct(rule: str, calls: Hotspot) -> None:
    assert rule not in insights(8.122, calls)


def test_a_heavy_call_of_a_library_is_named_where_nothing_special_is_known_of_it() -> None:
    heavy = call("find_setting", "loads", 2.6, 400, "standard library")
    found = insights(3.3, heavy)["heavy-library-call"]
    assert "Call loads less often in find_setting" in found.title
    assert "heavy-library-call" not in insights(33.0, heavy)


def test_a_library_that_calls_the_program_back_is_not_what_takes_the_time() -> None:
    """Flask, a test runner, a task queue: what they call takes it."""
    served = call("main", "run_forever", 5.0, 1, "flask")
    back = call("dispatch", "view", 4.8, 400, "own", f"{PACKAGES}flask/app.py")
    assert "heavy-library-call" not in insights(5.2, served, back)


@pytest.mark.parametrize(
    ("imports", "evaluating", "known"), [(6.08, 1.02, True), (6.08, 0.25, False), (0.1, 1.02, False)]
)
def test_what_imports_leave_of_a_short_run_is_judged_by_itself(
    imports: float, evaluating: float, known: bool
) -> None:
    """net.py: 1.02 s of 7.13 s in evaluate, 6.08 s in imports of torch. The other two are made up of it."""
    spots = (
        Hotspot("evaluate", 0.13, evaluating, 1, "p.py", 4),
        Hotspot("<built-in method marshal.loads>", 0.44),
    )
    own = Profile("own time by function", "s", 7.13, spots, "own-time")
    loading = Profile(
        "imports", "s", imports, (Hotspot("<module>", imports, file="torch/__init__.py"),), "imports"
    )
    items = call("evaluate", "<method 'item' of 'torch._C.TensorBase' objects>", 0.02, 18_632)
    assert ("tensor-elements" in insights(7.13, items, profiles=(own, loading))) == known


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("argmap_shortest_path_length_26", "Call shortest_path_length less often in mean_distance"),
        ("Module._wrapped_call_impl", "Call torch.nn.Module less often in mean_distance"),
    ],
)
def test_what_a_line_leads_into_has_the_name_that_its_user_wrote(function: str, name: str) -> None:
    """graph.py and net.py by samples alone."""
    inner = (CodeLine(function, f"{PACKAGES}networkx/x.py", 59, 1.4),)
    lines = Profile(
        "l",
        "s",
        1.6,
        (Hotspot("mean_distance", 0.0, 1.4, file="p.py", line=7, lines=inner),),
        "sampled-lines",
    )
    found = insights(1.6, profiles=(lines,))["heavy-library-call"]
    assert found.title == name
    assert found.where.line == 7


def own_time(function: str, seconds: float, total: float) -> Profile:
    return Profile(
        "own time by function", "s", total, (Hotspot(function, seconds, file="p.py", line=4),), "own-time"
    )


def sampled(function: str, own: float, inclusive: float) -> Profile:
    spots = (Hotspot(function, own, inclusive, library="libpython3.11.so.1.0"),)
    return Profile("cpu-clock by function", "s", 1.0, spots, "functions")


def test_a_search_in_a_list_is_told_by_the_interpreters_function() -> None:
    """membership.py: 25 % in list_contains itself, 98 % with the comparisons that it calls."""
    found = insights(
        3.2, profiles=(own_time("count_known", 3.15, 3.2), sampled("list_contains", 0.247, 0.985))
    )
    assert "count_known" in found["list-membership"].title
    assert found["list-membership"].where.line == 4
    assert "hot-python-function" not in found  # the same function, told once


def test_a_search_in_a_list_of_little_time_is_none() -> None:
    assert "list-membership" not in insights(3.2, profiles=(sampled("list_contains", 0.02, 0.05),))


def test_a_collector_that_runs_often_is_told_without_a_place() -> None:
    found = insights(3.2, profiles=(own_time("load", 2.0, 3.2), sampled("gc_collect_main", 0.208, 0.403)))
    assert found["garbage-collection"].where.function is None


OBJECTS = f"{PACKAGES}pandas/core/ops/array_ops.py"
TEXTS = f"{PACKAGES}pandas/core/strings/object_array.py"
EVALUATE = f"{PACKAGES}pandas/core/computation/expressions.py"


def line(function: str, number: int, total: float, into: str | None = None, own: float = 0.0) -> Hotspot:
    inner = (CodeLine("OpsMixin.__gt__", f"{PACKAGES}{into}/core/x.py", 59, total),) if into else ()
    return Hotspot(function, own, total, file="p.py", line=number, lines=inner)


def of_objects(
    total: float,
    functions: tuple[tuple[str, str, float], ...],
    *lines: Hotspot,
    native: tuple[Hotspot, ...] = (),
) -> dict[str, Insight]:
    spots = tuple(Hotspot(name, own, own, file=file) for name, file, own in functions)
    profiles = (
        Profile("functions", "s", total, spots, "sampled-functions"),
        Profile("lines", "s", total, lines, "sampled-lines"),
        Profile("cpu-clock", "s", 2.736, native, "functions"),
    )
    document = replace(documents.empty(), profiles=profiles, packages={"pandas": "3.1.1"})
    return {insight.rule: insight for insight in find_insights(document)}


def loop(function: str, inclusive: float) -> tuple[Hotspot, ...]:
    return (Hotspot(function, 0.078, inclusive, library="_multiarray_umath.cpython-311-x86_64-linux-gnu.so"),)


COMPARED = ("comp_method_OBJECT_ARRAY", OBJECTS, 0.654)


def test_a_column_of_objects_is_told_by_what_pandas_does_only_with_such() -> None:
    """compare.py: a million floats in a column of dtype object."""
    lines = (line("over_limit", 16, 0.776, "pandas"), line("main", 21, 0.066, own=0.066))
    found = of_objects(1.229, (COMPARED,), *lines)
    assert "comp_method_OBJECT_ARRAY" in found["object-dtype"].evidence
    assert (found["object-dtype"].where.function, found["object-dtype"].where.line) == ("over_limit", 16)
    assert found["object-dtype"].gain is not None
    assert found["object-dtype"].gain.at_most == pytest.approx(0.654 / 1.229)
    assert "heavy-library-call" not in found  # the same time, told once


def test_texts_that_python_handles_one_by_one_are_objects() -> None:
    own = (
        ("ObjectStringArrayMixin._str_slice.<locals>.<lambda>", TEXTS, 0.594),
        ("ObjectStringArrayMixin._str_upper.<locals>.<lambda>", TEXTS, 0.533),
    )
    found = of_objects(2.522, own, line("countries", 13, 2.04, "pandas"))["object-dtype"]
    assert "_str_slice" in found.evidence
    assert "category" in found.change


def test_an_array_of_objects_is_told_by_numpys_loop_over_them() -> None:
    """arith.py: a product of a column of floats and one of ints in dtype object; arrays.py: no pandas at all."""
    evaluate = ("_evaluate_standard", EVALUATE, 1.722)
    multiplied = loop("PyUFunc_OO_O", 1.337)
    found = of_objects(2.49, (evaluate,), line("revenue", 16, 2.089, "pandas"), native=multiplied)
    assert found["object-dtype"].where.line == 16
    plain = of_objects(3.857, (), line("energy", 12, 3.564, own=1.511), native=multiplied)["object-dtype"]
    assert (plain.where.function, plain.where.line) == ("energy", 12)


@pytest.mark.parametrize(
    ("functions", "native"),
    [
        (
            (("_evaluate_standard", EVALUATE, 1.722),),
            loop("DOUBLE_multiply", 1.4),
        ),  # made up: a loop over doubles
        ((COMPARED,), loop("PyUFunc_dd_d", 1.3)),  # of a program that takes 20 times as long
        ((("comp_method_OBJECT_ARRAY", "own/compare.py", 15.0),), ()),
        ((), loop("PyUFunc_OO_O", 0.2)),
        ((), loop("PyUFunc_OnesLikeTypeResolver", 2.0)),
    ],
)
def test_columns_with_types_and_a_little_of_objects_are_left_alone(
    functions: tuple[tuple[str, str, float], ...], native: tuple[Hotspot, ...]
) -> None:
    """Made up from the recordings above: other names, or less of the time."""
    found = of_objects(24.6, functions, line("revenue", 16, 20.0, "pandas"), native=native)
    assert "object-dtype" not in found


def test_rows_that_a_function_is_applied_to_are_told_as_that() -> None:
    made = Profile("own functions and what they call", "s", 4.622, (APPLY, APPLIED, ELEMENT), "program-calls")
    objects = Profile(
        "functions", "s", 2.0, (Hotspot(*COMPARED[:1], 1.0, file=OBJECTS),), "sampled-functions"
    )
    lines = Profile("lines", "s", 2.0, (line("main", 4, 1.9, "pandas"),), "sampled-lines")
    found = {one.rule for one in find_insights(replace(documents.empty(), profiles=(made, objects, lines)))}
    assert "pandas-apply" in found
    assert "object-dtype" not in found
