"""A kernel of Numba in which the fast index of the threads is the slow one of the array."""

import numpy
from numba import cuda


@cuda.jit  # also
def add_one(out, inp):  # also
    row, column = cuda.grid(2)
    if row < inp.shape[0] and column < inp.shape[1]:
        out[row, column] = inp[row, column] + 1.0  # answer


def main():
    n = 8192
    inp = cuda.to_device(numpy.ones((n, n), numpy.float32))
    out = cuda.device_array_like(inp)
    for _ in range(200):
        add_one[(n // 32, n // 8), (32, 8)](out, inp)  # also
    cuda.synchronize()
    print(out[:1, :1].copy_to_host())


main()
