"""Orders are read and checked, packed by a pool of two threads, and sent by a thread that waits for the network."""

import json
import queue
import re
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

LINE = re.compile(r"(?P<name>\w+)@(?P<shop>[\w.]+):(?P<amount>\d+)")
packed: queue.Queue[bytes] = queue.Queue()
log = threading.Lock()
sent: list[int] = []


def read_orders(count: int) -> list[dict[str, str]]:
    text = json.dumps([f"customer{n}@shop{n % 40}.example:{n * 37 % 990}" for n in range(count)])
    return [match.groupdict() for line in json.loads(text) if (match := LINE.match(line))]


def check(orders: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted((order for order in orders if int(order["amount"]) > 20), key=by_shop)


def by_shop(order: dict[str, str]) -> tuple[str, int]:
    return order["shop"], int(order["amount"])


def pack(orders: list[dict[str, str]]) -> None:
    data = zlib.compress(json.dumps(orders).encode(), 9)
    with log:  # the thread that sends holds it while it writes
        packed.put(data)


def send(parcels: int) -> None:
    for _ in range(parcels):
        data = packed.get()
        with log:
            sent.append(len(data))
            time.sleep(0.03)


if __name__ == "__main__":
    sender = threading.Thread(target=send, args=(40,), name="sender")
    sender.start()
    with ThreadPoolExecutor(2, thread_name_prefix="packer") as pool:
        for _ in range(5):
            orders = check(read_orders(60_000))
            for part in range(8):
                pool.submit(pack, orders[part::8])
    sender.join()
    print(sum(sent), "bytes")
