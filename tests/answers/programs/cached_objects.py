import functools


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


@functools.cache
def weight(point):
    total = 0
    for step in range(1500):
        total += point.x * step ^ point.y  # answer
    return total


def main():
    total = 0
    for number in range(6000):
        total += weight(Point(number % 5, number % 3))  # also
    return total


print(main())
