"""Kernels from a text, as a language model writes them."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.files.temporary import TemporaryFolder
from profkit.kernels.evaluation.sources.modules import find_function, load_module
from profkit.kernels.evaluation.sources.names import (
    encode_name,
    function_stems,
    name_meaning,
    overloads_of,
)
from profkit.kernels.evaluation.sources.source import Kernel, ListedSource, LoadError
from profkit.kernels.evaluation.sources.text import SUFFIX, parse_text, with_imports


def compile_kernel_from_string(
    kernel_code: str,
    op_name: str,
    kernel_file_path: str | Path,
    expected_fn_name: str,
    module_name: str,
) -> Kernel:
    """The function `{expected_fn_name}_kernel_impl` of a text, which is kept in `kernel_file_path`.

    Where the text uses `torch`, `nn`, `F`, `triton`, `tl`, `helion` or `hl` without an import, the file has the import,
    behind `from __future__`: it runs alone. `relu`, `relu__default` and `relu.default` name the same function. Triton
    compiles when a kernel is first launched: what it does not accept is raised then.

    Raises LoadError (a RuntimeError) for a text that cannot be run, or that lacks the function; then it lists those
    that are there.
    """
    path = Path(kernel_file_path)
    stem, kernel_code = expected_fn_name.removesuffix(SUFFIX), with_imports(kernel_code)
    stems = [stem, encode_name(stem)]
    for name in (stem, op_name):
        with suppress(UsageError):  # a function may have any name
            stems += function_stems(name_meaning(name))
    function_names = tuple(dict.fromkeys(each + SUFFIX for each in stems))
    try:
        parse_text(kernel_code, path.name)
        if not _holds(path, kernel_code):  # who judges it may not write there
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(kernel_code, encoding="utf-8")
        return find_function(load_module(path, module_name), function_names)
    except (Exception, SystemExit) as error:
        reason = str(error) if isinstance(error, LoadError) else f"{type(error).__name__}: {error}"
        raise LoadError(f"Failed to compile kernel for {op_name}: {reason}") from error


def _holds(path: Path, text: str) -> bool:
    with suppress(OSError):
        return read_bounded(path) == text.encode()
    return False


class StringSource(ListedSource):
    """The kernel of one operation as a text. Its file is `path`, or one that is removed with this object."""

    def __init__(self, text: str, operation: str, path: Path | None = None) -> None:
        meaning = name_meaning(operation)
        stems = function_stems(meaning)
        parsed = None
        with suppress(LoadError):  # loading it says what is wrong
            parsed = parse_text(text, operation)
        # Of the names that its function may have, the one that it has; the shortest where it has none.
        there = parsed.names if parsed is not None else ()
        self._stem = next((stem for stem in stems if stem + SUFFIX in there), stems[-1])
        signature = parsed.signatures.get(self._stem + SUFFIX) if parsed is not None else None
        if path is None:
            self._folder = TemporaryFolder("kernel")
            path = Path(self._folder.name, f"{self._stem}.py")
        super().__init__(dict.fromkeys(overloads_of(meaning, signature), str(path)))
        self._text = text
        self._path = path
        self._kernel: Kernel | None = None

    def load(self, operation: str) -> Kernel:
        """The function of the text, which is run once. Raises LoadError."""
        if not self.has_kernel(operation):
            raise LoadError(f"the text has no kernel for {operation}")
        if self._kernel is None:
            digest = hashlib.sha256(self._text.encode(errors="replace")).hexdigest()[:12]
            module = f"profkit_kernel_{self._stem}_{digest}"
            self._kernel = compile_kernel_from_string(self._text, operation, self._path, self._stem, module)
        return self._kernel
