import threading


def count_primes(low, high, found):
    for number in range(low, high):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):  # answer
            found.append(number)


found = []
threads = [threading.Thread(target=count_primes, args=(2 + 60000 * n, 60002 + 60000 * n, found)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found))
