"""Insights on arrays of NumPy and pandas that are used one number at a time, or for a few numbers at a time.

The samples say what a variable holds and how many elements it has, the source what is done with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from math import prod

from profkit.analysis.judge.rules.counted import with_slashes
from profkit.analysis.judge.rules.spot_loops import is_in_loop
from profkit.analysis.judge.rules.spots import (
    Find,
    called_names,
    calls_text,
    count_text,
    say,
    takes_the_time,
)
from profkit.analysis.judge.words import words
from profkit.analysis.necessary_work.numpy_lines import forms_of
from profkit.analysis.stacks.line_counts import count_of, names_in
from profkit.analysis.stacks.searches import dotted
from profkit.core.formatting import percent_text
from profkit.core.types import ArrayForm, CodeSpot, Insight, RunDocument, Variable

MIN_ELEMENTS, FEW_ELEMENTS = 1000, 16
MIN_CALLS = 1000  # with fewer calls, the overhead of a call does not matter
OVERHEAD = 0.3  # of a place's time, in NumPy's own Python code
SHORT = 100e-6  # seconds of a call for a few numbers
AGAIN = 8  # executions of a line: with fewer, a copy in order does not pay
CACHE_LINE = 64  # bytes, on x86 and most Arm processors; on Apple's 128
FAR = 4  # times the size of an element: nearer ones still share a cache line
BEYOND_CACHES = 1 << 15  # elements, each of a cache line: 2 MiB, which is more than a core's own caches hold
_OF_ALL = frozenset(
    (
        "mean",
        "std",
        "var",
        "sum",
        "prod",
        "min",
        "max",
        "argmin",
        "argmax",
        "any",
        "all",
        "dot",
        "cumsum",
        "clip",
        "round",
    )
)
# A copy in order is the remedy itself, and a call that asks for a shape reads no element.
_COPIES = re.compile(r"numpy\.(ascontiguousarray|asfortranarray|array|copy|asarray|require|shape|ndim|size)")
LARGER = 2  # times as many elements in all singular vectors as in the matrix
_SCALAR = re.compile(r"numpy\.(float|u?int|bool|complex|datetime|timedelta)\w*")
_OF_ARRAYS = re.compile(r"numpy\.ndarray( of integers)?|pandas\.Series|torch\.Tensor( of integers)?")
_NUMPY = re.compile(r"/numpy/(?!random/|testing/|f2py/)[^:]*\.py$")
# Functions that take a list for an array of numbers; of others, it is not known what a list holds.
_OF_NUMBERS = re.compile(
    r"numpy\.(a?mean|average|median|std|var|sum|prod|a?max|a?min|argmax|argmin|clip|dot|cross|percentile|quantile"
    r"|linalg\.norm|diff|cumsum|sqrt|abs|round)"
)
_OTHER = re.compile(
    r"numpy\.(array|asarray|ndarray|zeros|ones|empty|arange|random\..*)"
)  # have rules of their own


def single_items(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a loop over an array whose items were seen to be single numbers."""
    held = spot.variables
    for construct in spot.code.find("item") if spot.code is not None and spot.kind == "python" else ():
        item, array = held.get(construct.name), held.get(construct.how)
        if item is None or not _SCALAR.fullmatch(item.type) or not _is_large(array):
            continue
        if spot.code is None or not re.search(rf"\b{re.escape(construct.name)}\b", spot.code.text):
            continue  # the line does something else for each item
        if any(name != construct.name and _is_worked_on(spot, name, array) for name, array in held.items()):
            continue  # it computes with a whole array for each item
        if spot.code.find("carried"):
            continue  # an item that needs the one before
        return say(
            spot,
            "element-wise",
            f"Work on all of {construct.how} at once, not on one element at a time",
            f"each {construct.name} is a {item.type}, a newly created object, and each operation on it costs some ten "
            "times what it does for a number of Python",
            change=words("element-wise.numpy", "host"),
        )
    return None


def _is_worked_on(spot: CodeSpot, name: str, array: Variable) -> bool:
    """Return whether a line computes with a whole array of some elements, beside what it does with a single number."""
    statement = spot.code.statement if spot.code is not None else ""
    of_arrays = _OF_ARRAYS.fullmatch(array.type) is not None and (array.length or 0) > FEW_ELEMENTS
    return of_arrays and bool(statement) and _works_on(statement, name)


def _is_large(array: Variable | None) -> bool:
    """Return whether a variable is an array of many elements; what a comprehension goes through is not among its
    variables.
    """
    return array is None or (
        _OF_ARRAYS.fullmatch(array.type) is not None and (array.length or 0) >= MIN_ELEMENTS
    )


def builtin_of_array(document: RunDocument, spot: CodeSpot) -> Insight | None:  # noqa: ARG001
    """Return a function of Python that takes the elements of an array one by one: `sum(array)`."""
    for construct in spot.code.find("builtin") if spot.code is not None else ():
        held = spot.variables.get(construct.name)
        if held is None or not _OF_ARRAYS.fullmatch(held.type) or not takes_the_time(spot, construct.how):
            continue
        if held.length is not None and 0 <= held.length < MIN_ELEMENTS:
            continue
        method = "numpy.sort(...)" if construct.how == "sorted" else f".{construct.how}() of the array"
        return say(
            spot,
            "element-wise",
            f"Use {method}: Python's {construct.how} takes its elements one by one",
            f"{construct.name} is a {held.type}"
            + (f" of {count_text(held.length)} elements" if held.length and held.length > 0 else "")
            + ", and makes an object of each",
            change=words("element-wise.builtin", "host").format(method=method),
        )
    return None


def few_numbers(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find a NumPy function that is called again and again for a few numbers, so that the call itself costs most."""
    code, under = spot.code, spot.under
    called = [name for name in called_names(spot) if name.startswith("numpy.") and not _OTHER.fullmatch(name)]
    if code is None or not called or spot.kind not in ("python", "library"):
        return None
    part = max((frame.value for frame in spot.below if _NUMPY.search(with_slashes(frame.file))), default=0.0)
    times = max(spot.executions or 0, spot.calls or 0, (under.calls or 0) if under is not None else 0)
    looped = is_in_loop(document, spot) or (spot.calls or 0) >= MIN_CALLS
    if part < OVERHEAD or times < MIN_CALLS or not looped or spot.seconds > SHORT * times:
        return None
    counted = count_of(document, spot.where.file, spot.where.line)
    forms = forms_of(counted, max) if counted is not None else {}
    sizes = {name: prod(form.shape) for name, form in forms.items() if form.shape is not None}
    if not code.statement or not _are_few(spot, code.statement, sizes):
        return None
    return say(
        spot,
        "few-numbers",
        f"{called[0]} is called {'at least ' if spot.partial else ''}{count_text(times)} times for a few numbers each",
        f"{percent_text(100 * part)} of this is in NumPy's own code in Python, which a call for a million numbers runs "
        f"as often; {calls_text(spot)}",
        spot.share * part,
        change=words("few-numbers", "host"),
    )


def _are_few(spot: CodeSpot, statement: str, sizes: Mapping[str, int]) -> bool:
    """Return whether a statement passes nothing to NumPy but numbers, and arrays and lists of a few elements.

    `sizes`: the numbers of elements of arrays that were sampled in executions of the line.
    """
    of_numbers = all(
        map(
            _OF_NUMBERS.fullmatch,
            (called_name for called_name in called_names(spot) if called_name.startswith("numpy.")),
        )
    )
    given = list(_given_to_numpy(statement))
    if any(argument.startswith("*") for argument in given):
        return False
    for path in (each for argument in given for each in names_in(argument)):
        name = "".join(path)
        if name in sizes:
            if sizes[name] > FEW_ELEMENTS:
                return False
            continue
        held = spot.variables.get(name) or spot.variables.get(path[0])
        if held is not None and held.type in ("list", "tuple") and not of_numbers:
            return False
        if held is None and (len(path) > 1 or path[0] == "self"):
            return False  # an attribute or an element of a value that was not sampled
        if held is not None and not _SCALAR.fullmatch(held.type) and not 0 <= _size(held) <= FEW_ELEMENTS:
            return False
    return True


def _given_to_numpy(statement: str) -> Iterator[str]:
    """Yield the arguments of the calls of NumPy in a statement, in which modules stand by their own names."""
    for node in ast.walk(ast.parse(statement)):
        if isinstance(node, ast.Call) and dotted(node.func).startswith("numpy."):
            yield from map(ast.unparse, (*node.args, *(each.value for each in node.keywords)))


def _size(held: Variable) -> int:
    return held.length if held.length is not None else -1


def distant_elements(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find an array that a line works on again and again, with each element in a cache line of its own."""
    found = _distant(document, spot)
    if found is None:
        return None
    name, form, size = found
    same = [
        other
        for other in document.hot_spots
        if (other.where.file, other.where.function) == (spot.where.file, spot.where.function)
        and (also := _distant(document, other)) is not None
        and also[0] == name
    ]
    if not same or same[0] is not spot:
        return None  # it is reported once, at the line with most time
    lines = [str(other.where.line) for other in same[1:]]
    also_in = f"; so it is in {'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}" if lines else ""
    shape = ",".join(map(str, form.shape or ()))
    return say(
        spot,
        "distant-elements",
        f"Lay out {name} so that its elements are adjacent in memory: they are {form.apart} bytes apart",
        f"{name} [{shape}] is a view whose nearest elements are {form.apart} bytes apart, so that each {size} bytes "
        f"of it cost a cache line of {CACHE_LINE}{also_in}",
        sum(other.share for other in same) * (1 - size / CACHE_LINE),
        change=words("distant-elements", "host").format(name=name),
    )


def _distant(document: RunDocument, spot: CodeSpot) -> tuple[str, ArrayForm, int] | None:
    """Return the array of distant elements that a line works on, its form, and the bytes of an element."""
    if spot.code is None or not spot.code.statement or spot.kind not in ("python", "library"):
        return None
    if spot.under is not None and spot.under.library not in (None, "numpy"):
        return None
    counted = count_of(document, spot.where.file, spot.where.line)
    if counted is None or counted.executions < AGAIN:
        return None
    for name, form in forms_of(counted, max).items():
        size = _item_size(form.type)
        nearest = min((seen_form.apart for seen_form in counted.forms[name]), default=0)
        if not size or nearest < max(CACHE_LINE, FAR * size) or prod(form.shape or (0,)) < BEYOND_CACHES:
            continue
        if _works_on(spot.code.statement, name):
            return name, form, size
    return None


def _item_size(type_: str) -> int:
    """Return the bytes of an element of a type like "<f4"; 0 if it is not a number."""
    found = re.fullmatch(r"[<>|=]?[biufc](\d{1,2})", type_)
    return int(found[1]) if found is not None else 0


def _works_on(statement: str, name: str) -> bool:
    """Return whether a statement computes with all elements of a name, and not only selects or passes on some."""
    tree = ast.parse(statement)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or dotted(node) != name:
            continue
        parent = parents.get(node)
        if isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign):
            return True
        called = parents.get(parent) if isinstance(parent, ast.Attribute) else parent
        if not isinstance(called, ast.Call):
            continue
        function = dotted(called.func)
        if isinstance(parent, ast.Attribute) and parent.attr in _OF_ALL:
            return True
        if called is parent and function.startswith("numpy.") and not _COPIES.fullmatch(function):
            return True
    return False


def unused_vectors(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find a singular value decomposition that makes a square matrix of which only the first columns are used."""
    for construct in spot.code.find("vectors") if spot.code is not None else ():
        matrix, _, axis = construct.how.partition(" ")
        times = _times_as_large(document, spot, construct.name, matrix, of_columns=axis == "1")
        if times < LARGER:
            continue
        return say(
            spot,
            "large-temporary",
            "Do not compute the unused singular vectors: full_matrices=False",
            f"they have {times:,.0f} times as many elements as {matrix}; the first ones of {construct.name} "
            "alone are used",
            spot.share * (1 - 1 / times),
            change=words("large-temporary.vectors", "host").format(matrix=matrix),
        )
    return None


def _times_as_large(
    document: RunDocument, spot: CodeSpot, made: str, given: str, *, of_columns: bool
) -> float:
    """Return how many times as many elements the singular vectors have as the matrix: by its shape, or by what
    both hold.
    """
    counted = count_of(document, spot.where.file, spot.where.line)
    form = forms_of(counted, max).get(given) if counted is not None else None
    shape = (form.shape or ()) if form is not None else ()
    if len(shape) == 2 and min(shape) > 0:
        rows, columns = shape
        return columns / rows if of_columns else rows / columns
    sizes = [_size(held) if (held := spot.variables.get(name)) is not None else -1 for name in (made, given)]
    return sizes[0] / sizes[1] if sizes[1] > 0 else 0.0


PATTERNS: tuple[Find, ...] = (single_items, builtin_of_array, few_numbers, distant_elements, unused_vectors)
