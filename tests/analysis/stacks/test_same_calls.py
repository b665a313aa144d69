"""What source says of calls that get the same each time, and what it does not."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.source import line_code

READ = "import json\nfrom pathlib import Path\nPATH = 'a.json'\n"


def found(text: str, marked: str, kind: str) -> list[tuple[str, str]]:
    """Return the name and how of what the line with `marked` does."""
    line = next(number for number, each in enumerate(text.splitlines(), 1) if marked in each)
    code = line_code(text, line)
    assert code is not None
    return [(construct.name, construct.how) for construct in code.find(kind)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "def rate(key):\n    with open(PATH) as f:\n        return json.load(f)[key]  # here",
            [("PATH", "")],
        ),
        ("def rate(key):\n    return json.loads(Path(PATH).read_text())[key]  # here", [("Path(PATH)", "")]),
        ("def rate(key, path):\n    return open(path).read()[key]  # here", [("path", "1")]),
        (
            "def rates(keys):\n    for key in keys:\n        print(open(PATH).read()[key])  # here",
            [("PATH", "loop")],
        ),
        # another file each time
        ("def rates(paths):\n    for path in paths:\n        print(open(path).read())  # here", []),
        ("def rate(files):\n    return open(next(files)).read()  # here", []),
        ("def rate(key):\n    path = choose(key)\n    return open(path).read()  # here", []),
        # it is written, or belongs to others
        ("def rate(key):\n    with open(PATH, 'a') as f:\n        f.write(key)  # here", []),
        (
            "def save(x):\n    with open(PATH, 'w') as f:\n        f.write(x)\n"
            "def rate(key):\n    return open(PATH).read()[key]  # here",
            [],
        ),
        ("def load():\n    return open('/proc/loadavg').read()  # here", []),
        # it is another name each time
        (
            "def turn():\n    global PATH\n    PATH = PATH + 'x'\ndef rate():\n    return open(PATH).read()  # here",
            [],
        ),
    ],
)
def test_a_file_is_read_again_where_its_path_stays_and_nobody_writes_it(
    body: str, expected: list[tuple[str, str]]
) -> None:
    assert found(READ + body, "# here", "reads-again") == expected


SOLVE = "import numpy as np\nfrom scipy.linalg import solve\nA = np.eye(9)\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "def f(x):\n    for _ in range(9):\n        x = np.linalg.solve(A, x)  # here",
            ["numpy.linalg.solve"],
        ),
        ("def f(a, x):\n    return solve(a, x)  # here", ["scipy.linalg.solve 0"]),
        ("def f(x):\n    for n in range(9):\n        A[n] = 0\n        x = solve(A, x)  # here", []),
        ("def f(x):\n    for n in range(9):\n        fill(A)\n        x = solve(A, x)  # here", []),
        ("def f(x):\n    a = build(x)\n    return solve(a, x)  # here", []),
    ],
)
def test_a_matrix_is_the_same_where_nothing_changes_it(body: str, expected: list[str]) -> None:
    assert [how for _, how in found(SOLVE + body, "# here", "same-matrix")] == expected


PLATE = """import numpy as np
from scipy.sparse.linalg import spsolve
class Plate:
    def __init__(self, n):
        self.matrix = assemble(n)
    def source(self, t):
        {source}
    def advance(self, t):
        self.temp = spsolve(self.matrix, self.temp + self.source(t))  # here
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("return np.exp(t)", True),
        ("self.matrix[0] = t", False),
        ("self.matrix = assemble(t)", False),
        ("fill(self.matrix)", False),
    ],
)
def test_the_matrix_of_an_object_stays_where_none_of_its_methods_changes_it(source: str, said: bool) -> None:
    assert bool(found(PLATE.format(source=source), "# here", "same-matrix")) == said


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("        total += norm(v) * norm(row)  # here", [("norm", "1 2 norm(v)")]),
        ("        v[0] = 1; total += norm(v)  # here", []),
        ("        v.append(1); total += norm(v)  # here", []),
        ("        total += clock(v)  # here", []),
    ],
)
def test_a_call_is_the_same_where_the_function_has_no_effect_and_the_loop_changes_nothing(
    line: str, expected: list[tuple[str, str]]
) -> None:
    text = (
        "import math, time\ndef norm(v):\n    return math.sqrt(sum(x * x for x in v))\n"
        "def clock(v):\n    return time.time() + v[0]\n"
        f"def f(rows, v):\n    total = 0\n    for row in rows:\n{line}\n    return total\n"
    )
    assert found(text, "# here", "same-call") == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("LogisticRegression(C=2)", ["LogisticRegression"]),
        ("LogisticRegression(C=row)", []),
        ("KMeans(8)", []),
        ("KMeans(8, random_state=0)", ["KMeans"]),
    ],
)
def test_a_model_is_fitted_again_where_its_data_and_its_parameters_stay(
    made: str, expected: list[str]
) -> None:
    text = f"def f(rows):\n    for row in rows:\n        model = {made}\n        model.fit(X, y)  # here\n"
    assert [name for name, _ in found(text, "# here", "same-fit")] == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("np.where(ids == key)[0][0]", [("ids", "equal")]),
        ("(key == ids).any()", [("ids", "equal")]),
        ("np.abs(ids - key).argmin()", [("ids", "nearest")]),
        ("frame.filter(pl.col('a') == key)", [("frame", "polars")]),
        ("np.where(ids == 3)[0]", []),
        ("np.where(key.ids == key)[0]", []),
        ("frame.filter(pl.col('a') == 3)", []),
        ("key.filter(pl.col('a') == key)", []),
    ],
)
def test_an_array_is_compared_for_each_item_where_it_stays_and_the_item_changes(
    line: str, expected: list[tuple[str, str]]
) -> None:
    text = f"import numpy as np, polars as pl\nfor key in keys:\n    found.append({line})  # here\n"
    assert found(text, "# here", "compares-all") == expected


MASK = """def measure(image, labels):
    for label in range(1, labels.max()):
        mask = {test}  # made
        {use}  # used
"""


@pytest.mark.parametrize(
    ("test", "use", "made", "used"),
    [
        ("labels == label", "out[label] = image[mask].mean()", ["labels"], ["image"]),
        ("label == labels", "table.append((image[mask], depth[mask]))", ["labels"], ["image", "depth"]),
        ("labels == 3", "out[label] = image[mask]", [], []),  # the same each time
        ("labels == label", "labels[mask] = 0", [], []),  # it changes
        ("labels == label", "image[label] = 0", ["labels"], []),
    ],
)
def test_a_mask_that_a_loop_makes_by_name_is_followed_to_what_it_chooses(
    test: str, use: str, made: list[str], used: list[str]
) -> None:
    text = MASK.format(test=test, use=use)
    assert [name for name, _ in found(text, "# made", "kept-mask")] == made
    assert [name for name, _ in found(text, "# used", "kept-mask")] == used
    assert {how for _, how in found(text, "# made", "kept-mask")} <= {"3 label"}


SCORE = """import numpy as np
class Scorer:
    def replay(self, stream):
        for payment in stream:
            row = {row}
            score = self.model.predict_proba({given})[0]  # here
            {use}
"""
ROW = "np.array([self.store.features(payment)])"


@pytest.mark.parametrize(
    ("row", "given", "use", "said"),
    [
        (ROW, "row", "alerts.append((payment, score))", True),
        ("payment.values", "[row]", "alerts.append(score)", True),
        (ROW, "row", "if score > 0.5:\n                alerts.append(payment)", True),
        (ROW, "row", "alerts.append(np.append(row, score))", True),
        # the next batch may hold what this call gave
        (ROW, "row", "self.store.add(score)", False),
        (ROW, "row", "if score > 0.5:\n                self.store.block(payment)", False),
        (ROW, "row", "best = max(best, score); self.last = best", False),
        ("np.array([seen[-1], payment])", "row", "seen.append(score)", False),
        (
            "np.array(self.store.features(payment))",
            "row",
            "alerts.append(score)",
            False,
        ),  # of how many is not known
    ],
)
def test_a_batch_of_one_is_told_where_no_result_reaches_the_next_batch(
    row: str, given: str, use: str, said: bool
) -> None:
    found_here = found(SCORE.format(row=row, given=given, use=use), "# here", "of-one")
    assert bool(found_here) == said


CHURN = """import numpy as np
def score(model, customer):
    row = {row}
    return model.predict_proba(row)[0]  # here
def score_all(model, customers):
    for customer in customers:
        {scores} = score({given})  # calls
"""


@pytest.mark.parametrize(
    ("row", "scores", "given", "one", "calls"),
    [
        ("features(customer).reshape(1, -1)", "scores[customer.id]", "model, customer", True, True),
        ("features(customer).reshape(1, -1)", "model", "model, customer", True, False),  # the next needs it
        ("features(customer).reshape(1, -1)", "scores[customer.id]", "model, customers", True, False),
        ("customer.rows", "scores[customer.id]", "model, customer", False, True),
        ("features(model.last).reshape(1, -1)", "scores[customer.id]", "model, customer", True, True),
    ],
)
def test_a_batch_of_one_may_have_a_name_in_the_function_that_a_loop_calls_with_its_item(
    row: str, scores: str, given: str, one: bool, calls: bool
) -> None:
    text = CHURN.format(row=row, scores=scores, given=given)
    assert bool(found(text, "# here", "of-one")) == one
    assert bool([name for name, _ in found(text, "# calls", "of-item") if name == "score"]) == calls


@pytest.mark.parametrize(
    ("grows", "given", "said"),
    [
        ("tune = torch.cat([tune, note], dim=1)", "tune", [("model", "tune")]),
        ("tune = torch.cat((tune, note), dim=1)", "tune[:, -1:]", []),  # the new one alone
        ("tune = torch.cat([tune[:, 1:], note], dim=1)", "tune", []),  # a window, as long each time
        ("tune = note", "tune", []),
        ("other = torch.cat([tune, note], dim=1)", "tune", []),
    ],
)
def test_a_call_that_is_given_all_that_its_loop_joins_is_told(
    grows: str, given: str, said: list[tuple[str, str]]
) -> None:
    text = f"import torch\nfor _ in range(n):\n    note = pick(model({given}))  # here\n    {grows}\n"
    assert found(text, "# here", "given-grown") == said


TARIFF = """import json
def write_tariff(path, rng):
    with open(path, "w") as handle:
        json.dump(make(rng), handle)
def load_tariff(path):
    with open(path) as handle:
        return json.load(handle)  # here
def main():
    {writes}
    for parcel in parcels:
        check(parcel, load_tariff(PATH))
main()
{again}
"""


@pytest.mark.parametrize(
    ("writes", "again", "said"),
    [
        ("write_tariff(PATH, 1)", "", True),
        ("write_tariff(PATH, 1)", "main()", False),
        ("write_tariff(PATH, 1)", "run(write_tariff)", False),
        ("for n in range(3): write_tariff(PATH, n)", "", False),
    ],
)
def test_a_file_that_the_program_writes_once_stays_afterwards(writes: str, again: str, said: bool) -> None:
    assert bool(found(TARIFF.format(writes=writes, again=again), "# here", "reads-again")) == said
