"""Operations of torch on a processor: what the shapes of their tensors tell about the line that calls them."""

from __future__ import annotations

import re
from math import prod

from profkit.analysis.judge.rules.counted import profile_of
from profkit.analysis.judge.rules.gpu.models import CLASSES, SPARSE
from profkit.analysis.judge.rules.spots import Find, say
from profkit.analysis.judge.words import words
from profkit.core.types import BACKWARD_NODES, OPERATIONS_MADE, CodeSpot, Insight, Profile, RunDocument

MAJORITY = 0.5  # of the operations at the line
# Bytes per second that a core can write to memory, at most: writing the whole table takes at least this long.
WRITES = 20e9
_TABLE = re.compile(r"\[(\d+),(\d+)\] x \[([\d,]+)\]")
_PRODUCTS = ("matmul", "mm", "bmm", "linear", "addmm")
_KEPT = re.compile(r"\bretain_graph\s*=\s*True\b")
_BACKWARD = re.compile(r"_?embedding(_bag)?(_dense)?_backward")
_PRODUCT = re.compile(r"\[([\d,]+),(\d+)\] x \[\2,\d+\]")  # whose inner sizes are equal
_INDICES = re.compile(r"\[([\d,]+)\]")


def dense_gradient(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a table of which a batch uses few rows, but whose gradient is computed for all rows.

    The operation of the backward pass takes most of the line's operations, and each time as long as it takes to write
    the table at least once; with sparse gradients it has the same name. The table's rows and those that are looked up
    are in the shapes of the forward pass.
    """
    operations = profile_of(document, "line-operators")
    found = _sparse_table(operations) if operations is not None else None
    if operations is None or found is None:
        return None
    at = (spot.where.file, spot.where.line)
    here = [row for row in operations.hotspots if (row.file, row.line) == at and row.calls is not None]
    backward = [row for row in here if _BACKWARD.fullmatch(row.function)]
    seconds, times = sum(row.own for row in backward), sum(row.calls or 0 for row in backward)
    rows, used, size = found
    if not times or seconds < MAJORITY * sum(row.own for row in here) or seconds / times < size / WRITES:
        return None
    return say(
        spot,
        "dense-gradient",
        "Use sparse gradients for the embedding: its gradient is made for all rows in each step",
        f"the table has {rows:,} rows, of which a batch looks up {used:,} at most; the optimizer then goes through all "
        "of them, too",
        spot.share * (1 - used / rows),
        change=words("dense-gradient", "torch"),
    )


def _sparse_table(operations: Profile) -> tuple[int, int, int] | None:
    """Return the rows of the largest table, how many of them a batch looks up, if few, and its bytes in float32."""
    tables = []
    for row in operations.hotspots:
        shapes = _TABLE.match(row.shapes or "") if row.function in ("embedding", "embedding_bag") else None
        if shapes is not None:
            used = prod(int(size) for size in shapes[3].split(","))
            tables.append((int(shapes[1]), used, 4 * int(shapes[1]) * int(shapes[2])))
    return max((table for table in tables if table[0] >= SPARSE * table[1]), default=None)


AGAIN, SEVERAL_NODES = 1.9, 20  # times that a node is differentiated; nodes of the graph


def backward_again(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a backward pass that repeats an earlier one over the same graph, by torch's own count.

    Each operation of the forward pass has one node in the graph. The line itself keeps the graph (`retain_graph`).
    """
    operations, code = profile_of(document, "line-operators"), spot.code
    if operations is None or code is None or _KEPT.search(f"{code.text}\n{code.statement}") is None:
        return None
    at = (spot.where.file, spot.where.line)
    counts = [
        row.counters
        for row in operations.hotspots
        if (row.file, row.line) == at and BACKWARD_NODES in row.counters
    ]
    gone, made = (sum(counters[name] for counters in counts) for name in (BACKWARD_NODES, OPERATIONS_MADE))
    if made < SEVERAL_NODES or gone < AGAIN * made:
        return None
    return say(
        spot,
        "backward-again",
        f"The backward pass goes through what earlier ones went through: about {gone / made:.0f} times in all",
        f"torch counted {gone:,.0f} nodes of the backward pass for {made:,.0f} operations of these kinds",
        spot.share * (1 - made / gone),
        change=words("backward-again", "host"),
    )


def one_hot_product(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a line that picks rows of a table by multiplying it with a one-hot matrix.

    The line makes the matrix and multiplies it, and what it makes has as many columns as the table has rows. What is
    done at the line counts; its backward pass is at another one.
    """
    operations = profile_of(document, "line-operators")
    at = (spot.where.file, spot.where.line)
    here = [row for row in operations.hotspots if (row.file, row.line) == at] if operations else []
    parts = [row for row in here if row.calls is not None]
    made = {
        _count(indices[1])
        for row in parts
        if row.function == "one_hot" and (indices := _INDICES.match(row.shapes or ""))
    }
    products = [
        shape for row in parts if row.function in _PRODUCTS and (shape := _PRODUCT.match(row.shapes or ""))
    ]
    rows = max((int(shape[2]) for shape in products if _count(shape[1]) in made), default=0)
    # A sample that is drawn and made one-hot passes its gradient on to all columns.
    if rows < CLASSES or any(row.function.startswith(("softmax", "log_softmax")) for row in parts):
        return None
    share = sum(row.own for row in parts) / sum(row.own for row in here if row.calls is None)
    return say(
        spot,
        "one-hot-product",
        "Index the table in place of multiplying it with a one-hot matrix",
        f"the line makes a one-hot matrix of {rows:,} columns and multiplies the {rows:,} rows of a table with it",
        spot.share * min(1.0, share),
        change=words("one-hot-product", "torch"),
    )


def _count(sizes: str) -> int:
    return prod(map(int, sizes.split(",")))


PATTERNS: tuple[Find, ...] = (dense_gradient, backward_again, one_hot_product)
