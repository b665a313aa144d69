import threading
import time

lock = threading.Lock()
log = []


def task(number):
    for step in range(10):
        with lock:  # also
            time.sleep(0.02)  # answer
            log.append((number, step))


threads = [threading.Thread(target=task, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(log))
