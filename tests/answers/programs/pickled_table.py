from multiprocessing import Pool


def look_up(task):
    table, key = task
    return table[key]


def main():
    table = {number: f"row {number}" for number in range(60000)}
    with Pool(2) as pool:
        found = pool.map(look_up, [(table, key) for key in range(60)], chunksize=1)  # answer
    return len(found)


if __name__ == "__main__":
    print(main())
