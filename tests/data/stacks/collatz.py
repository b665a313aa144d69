import json
import multiprocessing
import threading
import time


def collatz(number):
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


def dump(rows):
    return [json.dumps({"row": row}, indent=1) for row in rows]


def wait(seconds):
    time.sleep(seconds)


def main():
    waiting = threading.Thread(target=wait, args=(0.5,), name="waiting")
    waiting.start()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(max(pool.map(collatz, range(1, 60000), chunksize=5000)))
    print(len(dump(range(30000))))
    waiting.join()
    wait(0.4)


main()
