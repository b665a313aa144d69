"""A softmax in Triton that holds 32,768 columns in four warps."""

import torch
import triton
import triton.language as tl


@triton.jit  # also
def softmax_rows(out, inp, columns, BLOCK: tl.constexpr):  # also
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(inp + row * columns + at, mask=at < columns, other=-float("inf"))  # also
    values = values - tl.max(values, axis=0)
    top = tl.exp(values)  # also
    tl.store(out + row * columns + at, top / tl.sum(top, axis=0), mask=at < columns)  # also


def main():
    rows, columns = 8192, 32768
    inp = torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(inp)
    for _ in range(300):
        softmax_rows[(rows,)](out, inp, columns, BLOCK=32768, num_warps=4)  # answer
    torch.cuda.synchronize()
    print(float(out[0].sum()))


main()
