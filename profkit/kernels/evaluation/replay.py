"""One test of an evaluation once more: with the same arguments, in a folder of its own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from profkit.core.errors import UsageError
from profkit.core.progress import Progress
from profkit.core.types import EvaluationDocument
from profkit.kernels.evaluation.journal import read_document, read_request, require_code
from profkit.kernels.evaluation.run import run_evaluation
from profkit.kernels.named_code import Code


def replay_test(
    folder: Path, test: str, progress: Progress, named: Sequence[Code] = ()
) -> EvaluationDocument:
    """Do the test whose id begins with `test` again; nothing in `folder` changes.

    Raises UnreadableReport where no evaluation is in the folder, and UsageError where it has no such test, or runs code
    that is not `named`.
    """
    request, document = read_request(folder), read_document(folder)
    line = f"profkit evaluate --replay {shlex.quote(test)} {shlex.quote(str(folder))}"
    require_code(request, named, line, file_option="--kernels")
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
