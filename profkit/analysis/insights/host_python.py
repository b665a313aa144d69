"""Rules on Python code: imports, the hottest function, and what the interpreter itself is busy with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_calls import WORTH, slow_constructs
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, Hotspot, Insight, Place, ProfileKind

IMPORTS = 0.2
COLLECTING = 0.25  # of the samples: imports of large packages alone are up to a fifth
INTERPRETED = 0.4  # of the instructions or samples: below, native code does the work
_INTERPRETER = re.compile(r"(^|/)(lib)?python[\d.]*(\.so[\d.]*)?$")
_ARRAYS = frozenset({"numpy", "torch", "pandas", "jax", "scipy"})


def heavy_imports(run: RunEvidence) -> Iterator[Insight]:
    """A program that spends a good part of its time on loading modules."""
    imports, whole = run.profile("imports"), run.profile("own-time")
    if imports is None or (run.document.timings and run.document.timings[0].kind != "process"):
        return
    total = whole.total if whole is not None else imports.total
    loaded = max(imports.total, max(one.total or one.own for one in imports.hotspots))
    share = min(1.0, loaded / total) if total > 0 else 0.0
    if share < IMPORTS:
        return
    heaviest = sorted(imports.hotspots, key=lambda one: -(one.total or one.own))[:3]
    titles = [_module_name(one, imports.hotspots) for one in heaviest]
    names = ", ".join(
        f"{title} {format_quantity(one.total or one.own, imports.unit)}"
        for title, one in zip(titles, heaviest, strict=True)
    )
    yield Insight(
        "heavy-imports",
        f"Load less at the start: {titles[0]}",
        f"{percent_text(100 * share)} of the profiled time is imports: {names}",
        "Import what only some runs need inside the function that needs it; import the "
        "submodule and not the package; keep one "
        "process alive instead of starting many.",
        Place(function=heaviest[0].function, file=heaviest[0].file),
        Gain(share, "the profiled time", "as if nothing were imported"),
    )


def _module_name(hotspot: Hotspot, imports: Sequence[Hotspot]) -> str:
    """`torch.nn` of `/venv/.../site-packages/torch/nn/__init__.py`; the function's own name where there is no file.

    Of a file elsewhere the folders count that are packages, which were imported as well: `tool.parser` of
    `/home/me/tool/src/tool/parser.py`.
    """
    if hotspot.function != "<module>" or not hotspot.file:
        return hotspot.function
    file = hotspot.file.replace("\\", "/")
    path = re.split(r"(?:site|dist)-packages/|/lib/python3\.\d+/", file)[-1]
    if path == file:
        begins = {one.file.replace("\\", "/") for one in imports if one.file}
        folder = file.rpartition("/")[0]
        while f"{folder}/__init__.py" in begins:
            folder = folder.rpartition("/")[0]
        path = file.removeprefix(f"{folder}/")
    return (
        path.removesuffix(".py").removesuffix("/__init__").rpartition("//")[2].replace("/", ".").lstrip(".")
    )


# ---------------------------------------------------------------- the interpreter's own functions


@dataclass(frozen=True)
class NativeConstruct:
    """A function of the interpreter in which only one way to write Python ends."""

    rule: str
    function: re.Pattern[str]
    title: str  # names {function}, the program's function
    meaning: str
    change: str


NATIVE = (
    NativeConstruct(
        "list-membership",
        re.compile("list_contains"),
        "Look up in a set or a dict, not in a list: {function}",
        "the interpreter looks through lists for `in`, element by element",
        "Make a set of the list once, outside of the loop (known = set(known)), or a dict where a value belongs to "
        "each; for sorted numbers bisect.",
    ),
    NativeConstruct(
        "string-building",
        re.compile(r"PyUnicode_Append|PyUnicode_Concat|unicode_concatenate"),
        "Join texts at the end instead of adding to one: {function}",
        "the interpreter copies texts to add to them: the whole text so far each time",
        'Append the parts to a list and "".join(parts) at the end, or write to io.StringIO.',
    ),
    NativeConstruct(
        "garbage-collection",
        re.compile(
            r"_?Py_?GC_Collect\w*|gc_collect_(main|generations|with_callback|region)|_PyObject_GC_Collect"
        ),
        "Let the garbage collector look at fewer objects",
        "the interpreter's collector looks through all containers for cycles, again and again",
        "gc.freeze() after the start, gc.set_threshold(100_000, 50, 50), or gc.disable() while many objects are made; "
        "fewer and larger objects (arrays, tuples, __slots__).",
    ),
)


def interpreter_constructs(run: RunEvidence) -> Iterator[Insight]:
    """What the sampled functions of the interpreter tell of the program: searches in lists, growing texts."""
    sampled = run.profile("functions")
    if sampled is None:
        return
    for construct in NATIVE:
        named = [one for one in sampled.hotspots if construct.function.fullmatch(one.function)]
        share = max((max(one.own, one.total or 0.0) for one in named), default=0.0) / sampled.total
        if share < (COLLECTING if construct.rule == "garbage-collection" else WORTH):
            continue
        place = Place() if construct.rule == "garbage-collection" else _hottest_place(run, share)
        function = place.function or "the hottest function"
        yield Insight(
            construct.rule,
            construct.title.format(function=function),
            f"{percent_text(100 * share)} of the samples are in {named[0].function} of Python: {construct.meaning}",
            construct.change,
            place,
            Gain(share, "the CPU time", "as if it took none"),
        )


def _hottest_place(run: RunEvidence, share: float) -> Place:
    """The program's function that spends at least about that share in its own lines, where there is one."""
    profile = run.profile("sampled-functions") or run.profile("own-time")
    own = [
        one
        for one in (profile.hotspots if profile is not None else ())
        if is_users_code(one.file, one.function)
    ]
    first = max(own, key=lambda one: one.own, default=None)
    if first is None or profile is None or first.own < 0.5 * share * profile.total:
        return Place()
    line = first.lines[0].line if first.lines else first.line
    return Place(function=first.function, file=first.file, line=line)


def hottest_function(run: RunEvidence) -> Iterator[Insight]:
    """The function of the user's own code in which the interpreter itself spends the most time.

    cProfile counts the operators of arrays and tensors as their caller's own time. So where native code was sampled or
    counted, the interpreter must be what works; where it was not, and such a library is loaded, the advice is for both.
    """
    profile = run.profile("own-time") or run.profile("python-functions")
    if profile is None:
        return
    own = [hotspot for hotspot in profile.hotspots if is_users_code(hotspot.file, hotspot.function)]
    first = max(own, key=lambda hotspot: hotspot.own, default=None)
    interpreter = interpreter_share(run)
    if (
        first is None
        or first.own < WORTH * profile.total
        or (interpreter is not None and interpreter < INTERPRETED)
        or any(
            one.where.function == first.function
            for one in (*interpreter_constructs(run), *slow_constructs(run))
        )
    ):
        return
    share = first.own / profile.total
    calls = ""
    if first.calls and first.calls > 1:
        calls = f", in {first.calls} calls of {format_quantity(first.own / first.calls, profile.unit)}"
    arrays = interpreter is None and bool(_ARRAYS & run.document.packages.keys())
    loop = (
        "move its loop into a library that works on whole arrays (numpy, pandas, torch), call it less often or "
        "cache its results (functools.cache), or compile it (numba, Cython)."
    )
    name = title_of(first)
    yield Insight(
        "hot-python-function",
        f"Look at {name} first" if arrays else f"Speed up {name}: Python itself works there",
        f"{percent_text(100 * share)} of the profiled time is in the lines of {first.function}{calls}",
        f"If it works on single elements: {loop} If it works on whole arrays: fewer and larger operations, smaller "
        "types, torch.compile or numba."
        if arrays
        else loop[0].upper() + loop[1:],
        Place(function=first.function, file=first.file, line=first.line),
        Gain(share, "the profiled time", "its own time, as if it took none"),
    )


def title_of(spot: Hotspot) -> str:
    """The function, or `the top level of train.py`."""
    if spot.function != "<module>":
        return spot.function
    return f"the top level of {(spot.file or '').replace(chr(92), '/').rpartition('/')[2]}"


def interpreter_share(run: RunEvidence) -> float | None:
    """Share (0..1) of the instructions, or else of the samples, in Python's own interpreter; None: nobody looked."""
    kinds: tuple[ProfileKind, ...] = ("counted-functions", "libraries")
    for kind in kinds:
        profile = run.profile(kind)
        if profile is not None:
            inside = sum(
                one.own for one in profile.hotspots if _INTERPRETER.search(one.library or one.function)
            )
            return inside / profile.total
    return None
