"""The process that runs kernels, and the judge's side of it.

The judge writes arguments into memory that both have (`memory`, for the CPU `host` and `arena`; `arguments`), lets the
process call the kernel (`process`), stops it, and reads the outputs out of its memory (`client`). The process gets no
reference, no seed and no clock that counts; what it says of itself is checked against what lies in its memory.
"""
