"""Words are counted in a dict that another process holds."""
from multiprocessing import Manager


def tally(words, counts):
    for word in words:
        counts[word] = counts.get(word, 0) + 1  # answer


if __name__ == "__main__":
    with Manager() as manager:
        counts = manager.dict()
        tally([f"word{n % 97}" for n in range(15_000)], counts)
        print(len(counts))
