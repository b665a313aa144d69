"""The process that runs kernels, and the judge's side of it.

The judge writes arguments into memory that both share (`memory`; `arguments`), lets the process call the
kernel (`process`), stops it, and reads the outputs out of its memory (`client`). The process gets no
reference, no seed and no clock that counts; what it says of itself is checked against the content of its
memory.
"""
