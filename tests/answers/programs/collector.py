import gc

gc.set_threshold(50, 2, 2)


class Node:
    def __init__(self, value, after):
        self.value = value
        self.after = after


def chain(count):
    kept = []
    for number in range(count):
        kept.append(Node(number, kept[-1] if kept else None))  # answer
    return kept


print(len(chain(400000)))
