import threading
import time

done = []


def work():
    time.sleep(1.03)
    done.append(True)


def wait_for_it():
    while not done:
        time.sleep(0.05)  # answer


for _ in range(2):
    done.clear()
    threading.Thread(target=work).start()
    wait_for_it()
print("done")
