"""The process that runs kernels, and the judge's side of it.

The judge writes arguments into memory that both share (`memory`, `arguments`), has the process call the kernel
(`worker`; inside of it: `server`), stops it, and reads the outputs out of its memory. The process gets no expected
result, no seed and no clock that counts; what it says of itself is checked against the content of its memory.
"""
