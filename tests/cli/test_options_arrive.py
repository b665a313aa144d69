"""What is typed arrives: every option of a command is in the options of the function that does the work."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runner import ENVIRONMENT, call_in_process

RUN = "--output out --name other --timeout 7 --precision 0.03"
MODEL = "--provider openai --model m --base-url http://localhost:1/v1 --key-env KEY --command true"
TESTS = "--ops relu --dtype float16 --device cuda --threads 3 --timeout 7"
LINES = {
    "profile": (
        "profkit.profiling.profile.profile_workload",
        "--backend cpu --passes timing --depth gate --targets t.yaml --sampling 3 --budget 9 --try none "
        f"--keep-arguments {RUN} -- true",
    ),
    "profile --pid": (
        "profkit.profiling.attach.profile_running",
        "--pid 1 --seconds 3 --targets t.yaml --output out --name other --keep-arguments",
    ),
    "record": (
        "profkit.profiling.record.record_report",
        "--tool ncu --report r --what counters --kernel k --timeout 7 --force -- true",
    ),
    "sweep": (
        "profkit.kernels.sweep.request.make_request",
        "--operations GELU --implementations PyTorch --batch 2 --sequence 2 --dimension 2 --dtype float16 "
        f"--direction backward --device cpu --gpus 0 --with k.py --threads 3 --budget 9 {RUN}",
    ),
    "evaluate": (
        "profkit.kernels.evaluation.request.make_request",
        f"--suite s.py {TESTS} --correctness-only --precision 0.03 --floor 0.1 --budget 9 k.py",
    ),
    "generate": (
        "profkit.generation.run.generate_kernels",
        f"--suite s.py {TESTS} {MODEL} --language cpp --profile-depth gate --at-once 2 --max-attempts 2 "
        "--max-tokens 9 --answer-tokens 9 --budget 9 --output out --run-id other",
    ),
}
# What no option says: set by the verb itself, or for others than the command line.
UNTYPED = {
    "JudgeSettings": {"only", "describe", "seed"},
    "ModelOptions": {"timeout", "retries", "limits", "spent"},
}


@pytest.mark.parametrize("name", LINES)
def test_each_option_that_is_typed_arrives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, line = LINES[name]
    seen: list[Any] = []

    def stop(*arguments: Any, **_: Any) -> None:
        seen.extend(arguments)
        raise SystemExit(7)

    monkeypatch.setattr(function, stop)
    (tmp_path / "s.py").touch()
    (tmp_path / "k.py").write_text("def relu_kernel_impl(x):\n    return x\n")
    said = call_in_process([*name.split(" -")[0].split(), *line.split()], tmp_path, ENVIRONMENT)
    assert said.code == 7, said.err
    usual = {
        f"{type(options).__name__}.{field.name}"
        for options in seen
        if hasattr(options, "__dataclass_fields__")
        for field in fields(options)
        if field.name not in UNTYPED.get(type(options).__name__, set())
        and getattr(options, field.name) == usual_of(field)
    }
    assert usual == (
        {"JudgeSettings.source", "JudgeSettings.correctness_only"} if name == "generate" else set()
    )


def usual_of(field: Any) -> object:
    """Return the field's default; what no option is equal to where it has none."""
    return field.default_factory() if callable(field.default_factory) else field.default
