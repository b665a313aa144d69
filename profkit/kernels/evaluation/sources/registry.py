"""Where kernels come from, by name: a request from what a user typed, and the source of a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.errors import MachineError, UsageError
from profkit.core.formatting import plural
from profkit.core.types import EvaluationTest
from profkit.kernels.devices import choose_device
from profkit.kernels.evaluation.sources.source import KernelSource, LoadError, SourceRequest
from profkit.kernels.evaluation.sources.text import SUFFIX, kernel_files, kernel_folders, read_text

BACKENDS = ("aten", "directory", "flag_gems", "llm")  # of the command line; a file is given by its path
_OTHER_NAMES = {"pregenerated": "directory", "flag-gems": "flag_gems", "flaggems": "flag_gems"}
DEFAULT_FOLDER = Path("generated_kernels")  # as the field's generators write it
SHOWN = 5  # names in a message


def make_source_request(
    backend: str = "", kernels: Path | None = None, file: Path | None = None, device: str = "auto"
) -> SourceRequest:
    """Where kernels come from, as the user says it; nothing of theirs is run, and torch is not needed.

    An empty backend is what the paths say: a file, a folder, and else aten. Raises UsageError for what is not there,
    what has no kernel by its names, and what does not go together; MachineError for a backend that cannot be had.
    """
    name = _OTHER_NAMES.get(backend, backend)
    if file is not None:
        if name or kernels is not None:
            raise UsageError(
                f"kernels come from {file} or from {f'--backend {backend}' if name else kernels}, not from both",
                f"profkit evaluate {file}",
            )
        return SourceRequest("file", (str(_check_file(file)),))
    if name in ("", "directory") and (name or kernels is not None):
        return SourceRequest("directory", (str(_check_folder(kernels or DEFAULT_FOLDER)),))
    if name not in ("", *BACKENDS):
        raise UsageError(f"there is no backend called {backend!r}", f"--backend {'|'.join(BACKENDS)}")
    if kernels is not None:
        raise UsageError(f"--backend {backend} takes no folder", f"--backend directory --kernels {kernels}")
    if name == "flag_gems":
        _check_flag_gems(device)
    return SourceRequest(name or "aten")


def _check_file(file: Path) -> Path:
    """Raises UsageError for a file that cannot be read, or has no kernel."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder", f"--backend directory --kernels {file}")
    if not file.exists():
        raise UsageError(f"{file} is not there", "profkit evaluate FILE.py")
    try:
        text = read_text(file)
    except LoadError as error:
        raise UsageError(str(error), f"python {file}") from error
    if not text.kernels and not text.implementations():
        where = f" that is written out (line {text.computed[0]})" if text.computed else ""
        raise UsageError(
            f"{file} has no kernel{where}",
            f'from profkit.evaluation import kernel; @kernel("add.Tensor"); or a function called relu{SUFFIX}',
        )
    return file.absolute()


def _check_folder(folder: Path) -> Path:
    """Raises UsageError for a folder that is not there, or without a kernel in it."""
    if not folder.exists():
        raise UsageError(f"{folder} is not there", "--kernels FOLDER, which has a folder for each operation")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", f"profkit evaluate {folder}")
    try:
        if any(map(kernel_files, kernel_folders(folder))):
            return folder.absolute()
        fix = _other_folder(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror or error}", "chmod +rx FOLDER") from error
    there = sorted(entry.name for entry in folder.iterdir())
    shown = ", ".join(there[:SHOWN]) + (", ..." if len(there) > SHOWN else "")
    raise UsageError(
        f"{folder} is empty" if not there else f"nothing in {folder} is named like an operation: {shown}", fix
    )


def _other_folder(folder: Path) -> str:
    """What the user may have meant: the newest run in it, or the folder around it."""
    runs = [run for run in kernel_folders(folder) if any(map(kernel_files, kernel_folders(run)))]
    if runs:
        return f"--kernels {max(runs, key=lambda run: (run.stat().st_mtime, run.name))}"
    if kernel_files(folder.absolute()):
        return f"--kernels {folder.parent}"
    return "--kernels FOLDER, with relu/relu.py in it, or add__Tensor/add__Tensor_implementation_v1.py"


def _check_flag_gems(device: str) -> None:
    from profkit.kernels.evaluation.sources.source import find_package

    if device == "auto":
        device, _ = choose_device(device, (), "this evaluation")
    if device == "cpu":  # before it is asked for: installing it would be for nothing
        raise MachineError("FlagGems has no kernels for the CPU", "--device cuda, where there is a GPU")
    find_package()


def open_source(request: SourceRequest) -> KernelSource:
    """The source of a request; needs torch. No kernel is loaded yet.

    Raises LoadError where a file cannot be read at all, MachineError for a package that is not installed.
    """
    if request.kind == "aten":
        from profkit.kernels.evaluation.sources.source import AtenSource

        return AtenSource()
    if request.kind == "directory":
        from profkit.kernels.evaluation.sources.files import DirectorySource

        return DirectorySource(Path(request.paths[0]))
    if request.kind == "file":
        from profkit.kernels.evaluation.sources.files import FileSource

        return FileSource(Path(request.paths[0]))
    if request.kind == "source":
        from profkit.kernels.evaluation.sources.files import StringSource

        return StringSource(
            request.text, request.operation, Path(request.paths[0]) if request.paths else None
        )
    if request.kind == "function":
        from profkit.kernels.evaluation.sources.functions import FunctionSource

        return FunctionSource(request)
    if request.kind == "functions":
        from profkit.kernels.evaluation.sources.functions import FunctionsSource, split_request

        return FunctionsSource({name: open_source(each) for name, each in split_request(request).items()})
    if request.kind == "compiled":
        from profkit.kernels.evaluation.sources.source import CompiledSource

        return CompiledSource()
    if request.kind == "flag_gems":
        from profkit.kernels.evaluation.sources.source import FlagGemsSource

        return FlagGemsSource()
    raise UsageError(
        f"there is no source of kernels called {request.kind!r}", f"one of {', '.join(BACKENDS)}"
    )


def describe_untested(
    source: KernelSource,
    request: SourceRequest,
    chosen: bool,
    tests: Sequence[EvaluationTest],
    suite: str = "",
) -> Iterator[str]:
    """A sentence on the user's kernels that no test calls, unless the tests were `chosen` by name."""
    if request.kind not in ("directory", "file") or chosen:
        return
    tested = {source.where(test.operation) for test in tests} if request.kind == "directory" else set()
    called = {test.operation for test in tests}
    left = [name for name in source.operations() if name not in called and source.where(name) not in tested]
    if left:
        more = "; --suite opinfo has more operations" if suite == "smoke" else ""
        shown = ", ".join(left[:SHOWN]) + (", ..." if len(left) > SHOWN else "")
        yield f"the suite has no test of {plural(len(left), 'operation')} with a kernel: {shown}{more}"
