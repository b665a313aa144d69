import random

random.seed(1)
words = [random.randrange(30000) for _ in range(24000)]


def unique(values):
    seen = []
    for value in values:
        if value not in seen:  # answer
            seen.append(value)
    return seen


print(len(unique(words)))
