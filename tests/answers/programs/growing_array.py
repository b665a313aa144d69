import numpy as np


def collect(count):
    values = np.empty(0)
    for n in range(count):
        values = np.append(values, n * 0.5)  # answer
    return values


print(collect(45000).sum())
