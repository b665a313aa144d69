"""Lists of arrays and of lists that become one tensor number by number, and what is converted whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.rules.spot_conversions import converted_one_by_one
from profkit.analysis.judge.rules.spot_loops import list_for_each
from profkit.analysis.stacks.source import line_code
from profkit.core.types import Beneath, CodeSpot, Insight, Place, RunDocument, Variable
from tests import documents

WORK = "/app/work.py"
HEAD = "import numpy as np\nimport torch\nimport jax.numpy as jnp\ndef sample(batch, rows):\n    for n in range(9):\n"


def spot_of(line: str, variables: dict[str, Variable], share: float = 0.4, at: int = 6) -> CodeSpot:
    """A place with so large a share, where the line's own call takes the time."""
    code = line_code(HEAD + f"        {line}\n" * (at - 5), at)
    assert code is not None
    called = next(construct.name for construct in code.find("call") if "." in construct.name[1:])
    return CodeSpot(
        share, 2 * share, "python", Place(function="sample", file=WORK, line=at), code=code,
        under=Beneath(called, None, calls=260), variables=variables, calls=260,
    )  # fmt: skip


def found_at(*spots: CodeSpot) -> list[Insight]:
    document: RunDocument = replace(documents.empty(), hot_spots=spots)
    return [found for spot in spots if (found := converted_one_by_one(document, spot)) is not None]


ARRAYS = Variable("numpy.ndarray", 192)


@pytest.mark.parametrize(
    ("line", "name", "held", "change"),
    [
        ("x = torch.tensor(rows)", "rows", ARRAYS, "torch.from_numpy(numpy.stack(rows))"),
        (
            "x = torch.tensor(batch.state, dtype=torch.float32)",
            "batch.state", ARRAYS, "torch.from_numpy(numpy.stack(batch.state))",
        ),
        ("x = torch.as_tensor(batch['state'])", "batch['state']", ARRAYS, "numpy.stack(batch['state'])"),
        ("x = torch.FloatTensor([b.state for b in batch])", "batch[].state", ARRAYS, "numpy.stack("),
        ("x = torch.tensor([s for s, a in batch])", "batch[][0]", ARRAYS, "numpy.stack("),
        ("x = torch.tensor(list(rows))", "rows", ARRAYS, "numpy.stack("),
        ("x = torch.tensor(rows)", "rows", Variable("numpy.number", 1), "from_numpy(numpy.array(rows))"),
        ("x = torch.tensor(rows)", "rows", Variable("list", 192), "numpy.array(rows, dtype=numpy.float32)"),
        ("x = jnp.array(rows)", "rows", ARRAYS, "jax.numpy.asarray(numpy.stack(rows))"),
        ("x = jnp.array(rows)", "rows", Variable("jax.Array", 192), "jax.numpy.stack(rows)"),
        ("x = np.array(rows)", "rows", Variable("torch.Tensor", 192), "torch.stack(rows).numpy()"),
    ],
)  # fmt: skip
def test_a_sequence_of_arrays_is_made_one_array_first(
    line: str, name: str, held: Variable, change: str
) -> None:
    (found,) = found_at(spot_of(line, {f"{name} [elements]": held}))
    assert "number by number" in found.title
    assert change in found.change
    assert found.gain is not None
    assert 0.8 * 0.4 <= found.gain.at_most <= 0.95 * 0.4


def test_two_lines_of_a_function_are_one_finding_with_what_both_take() -> None:
    held = {"batch.state [elements]": ARRAYS, "batch.after [elements]": ARRAYS}
    (found,) = found_at(
        spot_of("x = torch.tensor(batch.state)", held, 0.3, 6),
        spot_of("y = torch.tensor(batch.after)", held, 0.2, 7),
    )
    assert found.where.line == 6
    assert "the same in line 7 (20 %)" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.5 * 0.95)


@pytest.mark.parametrize(
    ("line", "name", "held"),
    [
        ("x = torch.from_numpy(np.stack(rows))", "rows", ARRAYS),  # as it is after the change
        ("x = torch.tensor(np.array(rows))", "rows", ARRAYS),
        ("x = torch.stack(rows)", "rows", Variable("torch.Tensor", 192)),
        ("x = np.array(rows)", "rows", ARRAYS),  # which copies whole arrays
        ("x = torch.tensor(rows)", "rows", Variable("torch.Tensor", 1)),  # as long as stack takes
        ("x = torch.tensor(rows)", "batch", ARRAYS),  # of another name
        ("x = torch.tensor([len(b.state) for b in batch])", "batch[].state", ARRAYS),  # a number of each
        ("x = torch.tensor([b.label for b in batch])", "batch[].state", ARRAYS),
    ],
)
def test_what_is_converted_whole_or_holds_plain_numbers_is_not_told(
    line: str, name: str, held: Variable
) -> None:
    assert not found_at(spot_of(line, {f"{name} [elements]": held}))


def test_the_time_of_another_call_is_not_that_of_the_conversion() -> None:
    spot = spot_of("x = model(torch.tensor(rows))", {"rows [elements]": ARRAYS})
    assert found_at(spot)
    assert not found_at(replace(spot, under=Beneath("model", "torch", calls=260)))


@pytest.mark.parametrize(("kind", "told"), [("numpy.ndarray", False), ("", True)])
def test_a_list_of_arrays_is_no_list_of_numbers(kind: str, told: bool) -> None:
    held = {"rows": Variable("list", 128)} | ({"rows [elements]": Variable(kind, 192)} if kind else {})
    assert (list_for_each(documents.empty(), spot_of("x = np.array(rows)", held)) is not None) == told
