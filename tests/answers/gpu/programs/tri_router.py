"""Mixture-of-experts router: softmax over the experts and the two best gates of each token."""
import time

import torch
import triton
import triton.language as tl

TOKENS, EXPERTS, LAYERS, STEPS = 4_194_304, 8, 4, 450


@triton.jit
def route(Logits, Gates, First, E: tl.constexpr):
    token = tl.program_id(0)  # answer
    experts = tl.arange(0, E)  # also
    logits = tl.load(Logits + token * E + experts)
    p = tl.exp(logits - tl.max(logits, 0))
    p = p / tl.sum(p, 0)
    best = tl.argmax(p, 0)
    gate1 = tl.max(p, 0)
    rest = tl.where(experts == best, -1.0, p)
    second = tl.argmax(rest, 0)
    gate2 = tl.max(rest, 0)
    chosen = (experts == best) | (experts == second)
    gates = tl.where(chosen, p / (gate1 + gate2), 0.0)
    tl.store(Gates + token * E + experts, gates)
    tl.store(First + token, best.to(tl.int8))


class Router:
    def __init__(self, device):
        self.gates = torch.empty(TOKENS, EXPERTS, device=device)
        self.first = torch.empty(TOKENS, device=device, dtype=torch.int8)

    def __call__(self, logits):
        tokens, experts = logits.shape
        route[(tokens,)](logits, self.gates, self.first, experts)  # also
        return self.gates, self.first


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    router = Router(device)
    logits = [torch.randn(TOKENS, EXPERTS, device=device) for _ in range(LAYERS)]
    load = torch.zeros(EXPERTS, device=device)
    start = time.time()
    for step in range(STEPS):
        for layer in range(LAYERS):
            gates, first = router(logits[layer])
        if step % 50 == 0:
            load += gates.mean(0)
    load /= load.sum()
    print("load", [round(v, 4) for v in load.tolist()], "seconds", time.time() - start)


if __name__ == "__main__":
    main()
