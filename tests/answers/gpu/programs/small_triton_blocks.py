"""A Triton kernel of 32 elements a program: half a million programs of one element a lane."""

import torch
import triton
import triton.language as tl


@triton.jit  # also
def saxpy(out, x, y, a, count, BLOCK: tl.constexpr):  # also
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # also
    mask = at < count
    tl.store(out + at, a * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)  # also


def main():
    count = 1 << 25
    x, y = torch.randn(count, device="cuda"), torch.randn(count, device="cuda")
    out = torch.empty_like(x)
    for _ in range(1500):
        saxpy[(count // 32,)](out, x, y, 2.0, count, BLOCK=32, num_warps=1)  # answer
    torch.cuda.synchronize()
    print(float(out[0]))


main()
