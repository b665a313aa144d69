from multiprocessing import Pool


def collatz(start):
    steps = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1  # answer
        steps += 1  # answer
    return steps


if __name__ == "__main__":
    with Pool(2) as pool:
        print(max(pool.map(collatz, range(1, 160000), chunksize=2000)))
