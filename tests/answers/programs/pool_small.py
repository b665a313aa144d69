from multiprocessing import Pool


def square(number):
    return number * number


if __name__ == "__main__":
    with Pool(2) as pool:
        print(sum(pool.imap(square, range(40000))))  # answer
