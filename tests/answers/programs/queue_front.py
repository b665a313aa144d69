def drain(count):
    waiting = list(range(count))
    total = 0
    while waiting:
        total += waiting.pop(0)  # answer
    return total


print(drain(160000))
