import pytest

from profkit.profiling.trials import output
from profkit.profiling.trials.output import compare_outputs


@pytest.mark.parametrize(
    ("plain", "changed", "word"),
    [
        (["a 1\n"], ["a 1\n"], "same"),
        (["a 1\n"], ["b 1\n"], "different"),
        (["rows 10"], ["rows 11"], "different"),  # a count is exact
        (["loss 0.1234"], ["loss 0.1235"], "same"),  # one unit of the last printed digit
        (["loss 0.1234"], ["loss 0.1244"], "different"),
        (["1.5e-3"], ["1.6e-3"], "same"),
        (
            ["took 2.31 s, sum 7", "took 2.45 s, sum 7"],
            ["took 1.87 s, sum 7"],
            "same",
        ),  # its own times differ
        (["took 2.31 s, sum 7", "took 2.45 s, sum 7"], ["took 1.87 s, sum 8"], "different"),
        (["b\na\n", "a\nb\n"], ["b\na\n"], "same"),  # workers print in any order
        (["b\na\n", "a\nb\n"], ["b\nc\n"], "different"),
        (["x", "y"], ["x"], "varies"),
        (["a 1"], ["a 1\nWarning: 2"], "different"),
        ([""], [""], "same"),
    ],
)
def test_output_is_the_same_up_to_what_also_differs_without_the_change(
    plain: list[str], changed: list[str], word: str
) -> None:
    assert compare_outputs(plain, changed) == word


def test_every_run_with_the_change_must_print_the_same() -> None:
    assert compare_outputs(["a 1", "a 1"], ["a 1", "a 2"]) == "different"


def test_output_that_is_the_same_each_time_is_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes longer than the runs of a program that prints megabytes."""
    taken: list[str] = []
    split = output._split
    monkeypatch.setattr(output, "_split", lambda text: taken.append(text) or split(text))
    assert compare_outputs(["a 1", "a 1"], ["a 1", "a 1"]) == "same"
    assert taken == []
    assert compare_outputs(["a 1", "a 1", "a 2"], ["a 1", "a 3"]) == "same"
    assert taken == ["a 1", "a 2", "a 3"]
