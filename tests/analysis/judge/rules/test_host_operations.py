"""What the shapes of torch's operations on a processor tell of the line that calls them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.rules.host_operations import backward_again, dense_gradient, one_hot_product
from profkit.core.types import (
    BACKWARD_NODES,
    OPERATIONS_MADE,
    CodeSpot,
    Hotspot,
    LineCode,
    Place,
    Profile,
    RunDocument,
)
from tests import documents

STEP = Place(function="step", file="/work/train.py", line=10)


def run(table: str, backward: float, calls: int = 10, function: str = "embedding_bag") -> RunDocument:
    """A step whose backward pass took `backward` seconds in `calls` calls, recorded with NumPy-like shapes."""
    operations = (
        Hotspot(function, 0.01, calls=calls, file="/work/train.py", line=8, shapes=table),
        Hotspot("_embedding_bag_backward", backward, calls=calls, file=STEP.file, line=STEP.line),
        Hotspot("addmm", 0.02, calls=calls, file=STEP.file, line=STEP.line),
    )
    profile = Profile("operations by line", "s", backward + 0.03, operations, "line-operators")
    return replace(documents.empty(), profiles=(profile,))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (run("[500000,48] x [3072] x [256] fp32", 0.69), True),
        (run("[500000,48] x [256,12] fp32", 0.69, function="embedding"), True),
        (run("[500000,48] x [3072] x [256] fp32", 0.01), False),  # sparse: 1 ms each, the table is 96 MB
        (run("[500000,48] x [300000] x [256] fp32", 0.69), False),  # most rows are looked up
        (run("[500000,48] x [3072] x [256] fp32", 0.69, function="linear"), False),
    ],
)
def test_a_gradient_for_all_rows_of_a_table_is_said_where_few_are_looked_up(
    document: RunDocument, said: bool
) -> None:
    assert (dense_gradient(document, CodeSpot(0.5, 2.0, "library", STEP)) is not None) == said


@pytest.mark.parametrize(
    ("made", "product", "also", "said"),
    [
        ("[64,12] int64", "[64,12,5000] x [5000,48] fp32", "to", True),
        ("[768] int64", "[64,12,5000] x [5000,48] fp32", "to", True),  # flattened
        ("[64] int64", "[64,12,5000] x [5000,48] fp32", "to", False),  # of others
        ("[64,12] int64", "[64,12,10] x [10,48] fp32", "to", False),  # no table
        (
            "[64,12] int64",
            "[64,12,5000] x [5000,48] fp32",
            "softmax",
            False,
        ),  # its gradient goes to all columns
    ],
)
def test_rows_that_a_one_hot_matrix_picks_are_said_on_a_processor(
    made: str, product: str, also: str, said: bool
) -> None:
    rows = (
        Hotspot("lookup", 0.4, 0.4, file=STEP.file, line=STEP.line),
        Hotspot("one_hot", 0.1, calls=10, file=STEP.file, line=STEP.line, shapes=made),
        Hotspot("matmul", 0.2, calls=10, file=STEP.file, line=STEP.line, shapes=product),
        Hotspot(also, 0.1, calls=10, file=STEP.file, line=STEP.line),
    )
    document = replace(
        documents.empty(), profiles=(Profile("operations by line", "s", 0.4, rows, "line-operators"),)
    )
    found = one_hot_product(document, CodeSpot(0.5, 2.0, "library", STEP))
    assert (found is not None) == said


def test_a_line_that_mostly_does_something_else_is_not_said() -> None:
    document = run("[500000,48] x [3072] x [256] fp32", 0.69)
    other = replace(STEP, line=11)
    assert dense_gradient(document, CodeSpot(0.5, 2.0, "library", other)) is None


@pytest.mark.parametrize(
    ("text", "nodes", "said"),
    [
        ("loss.backward(retain_graph=True)", 600.0, True),
        ("loss.backward(retain_graph=True)", 110.0, False),  # each operation once, and a few more
        ("loss.backward()", 600.0, False),  # the graph is gone after it: it cannot be gone through again
    ],
)
def test_a_backward_pass_through_earlier_steps_is_said_by_its_nodes(
    text: str, nodes: float, said: bool
) -> None:
    counters = {BACKWARD_NODES: nodes, OPERATIONS_MADE: 100.0}
    line = Hotspot("step", 1.0, 1.0, file=STEP.file, line=STEP.line, counters=counters)
    profile = Profile("operations by line", "s", 1.0, (line,), "line-operators")
    document = replace(documents.empty(), profiles=(profile,))
    found = backward_again(document, CodeSpot(0.6, 2.0, "library", STEP, code=LineCode(text, statement=text)))
    assert (found is not None) == said
    assert found is None or (found.gain is not None and found.gain.at_most == pytest.approx(0.5))
