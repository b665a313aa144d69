import numpy as np


def train(size, steps):
    weights = np.ones((size, size), dtype=np.float32)
    for _ in range(steps):
        weights = weights @ weights  # answer
        weights /= weights.max()
    return weights.sum()


print(train(1500, 14))
