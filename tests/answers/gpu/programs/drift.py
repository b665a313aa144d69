"""Watch a stream of embeddings for drift: kernel two-sample statistic against a reference set."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
REFERENCE, WINDOW, FEATURES = 4096, 4096, 256
WINDOWS = 50
BANDWIDTHS = (0.5, 1.0, 2.0, 4.0)


def gram(a, b, scale):
    d2 = ((a[:, None, :] - b[None, :, :]) ** 2).sum(dim=-1)  # answer
    total = torch.zeros_like(d2)
    for width in BANDWIDTHS:
        total += torch.exp(-d2 / (width * scale))
    return total / len(BANDWIDTHS)


class DriftMonitor:
    def __init__(self, reference):
        self.reference = reference
        self.scale = 2.0 * reference.shape[1]
        self.own = gram(reference, reference, self.scale).mean()

    def score(self, window):
        inside = gram(window, window, self.scale).mean()  # answer
        across = gram(self.reference, window, self.scale).mean()  # answer
        return self.own + inside - 2.0 * across


def window_at(step, mixing):
    x = torch.randn(WINDOW, FEATURES, device=device) @ mixing
    return x + 0.01 * step


@torch.no_grad()
def main():
    torch.manual_seed(0)
    mixing = torch.eye(FEATURES, device=device)
    monitor = DriftMonitor(torch.randn(REFERENCE, FEATURES, device=device))
    scores = torch.zeros(WINDOWS, device=device)
    start = time.time()
    for step in range(WINDOWS):
        scores[step] = monitor.score(window_at(step, mixing))
    scores = scores.cpu()
    print("first %.5f last %.5f" % (scores[0], scores[-1]), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
