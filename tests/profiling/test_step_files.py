import sys

from profkit.core.types import Step
from profkit.profiling.run_steps import run_step


def test_the_options_of_a_tool_lie_there_before_it_starts(tmp_path):
    options = tmp_path / "artifacts" / "options.json"
    argv = (sys.executable, "-c", f"print(open({str(options)!r}, encoding='utf-8').read())")
    done = run_step(Step("one", argv, files={str(options): '{"a": "é"}'}), tmp_path)
    assert done.workload_ok
    assert '{"a": "é"}' in done.text()
    assert options.is_file()
