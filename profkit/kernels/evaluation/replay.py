"""One test of an evaluation once more: with the same arguments, in a folder of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from profkit.core.errors import UsageError
from profkit.core.progress import Progress
from profkit.core.types import EvaluationDocument
from profkit.kernels.evaluation.journal import read_document, read_request
from profkit.kernels.evaluation.run import run_evaluation


def replay_test(folder: Path, test: str, progress: Progress) -> EvaluationDocument:
    """Do the test whose id begins with `test` again; nothing in `folder` changes.

    Raises UnreadableReport where no evaluation is in the folder, and UsageError where it has no such test.
    """
    request, document = read_request(folder), read_document(folder)
    known = [result.test for result in document.results if result.test.id.startswith(test)]
    if len(known) != 1:
        some = ", ".join(result.test.id for result in document.results[:3])
        raise UsageError(
            f"the evaluation in {folder} has {len(known) or 'no'} tests that begin with {test}",
            f"--replay with one of {some} ...",
        )
    settings = replace(request.settings, operations=(known[0].operation,), only=(known[0].id,))
    with TemporaryDirectory(prefix="profkit-replay-") as own:
        return run_evaluation(replace(request, settings=settings, folder=Path(own)), progress)
