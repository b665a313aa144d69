"""What compilers did for a program: what torch.compile and JAX compiled again, graph breaks, what Triton tuned."""

from .jax_compiler import JaxCompiler
from .operations_file import MAX_ROWS, add_to_file
from .torch_compile import CompilerLog
from .triton_kernels import TritonTuner
from .xla_copies import copied_arguments
from .xla_modules import (
    kernel_lines,
    kernel_rows,
    lines_of_module,
    module_texts,
    operation_lines,
    operations_of_module,
)

__all__ = [
    "MAX_ROWS",
    "CompilerLog",
    "JaxCompiler",
    "TritonTuner",
    "add_to_file",
    "copied_arguments",
    "kernel_lines",
    "kernel_rows",
    "lines_of_module",
    "module_texts",
    "operation_lines",
    "operations_of_module",
]
