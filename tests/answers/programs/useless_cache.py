import functools
import itertools

clock = itertools.count()


@functools.lru_cache(maxsize=None)
def price(item, now):
    return sum(n * n % 7 for n in range(2000)) + item  # answer


def quote(items):
    return sum(price(item, next(clock)) for item in items)


print(quote([n % 10 for n in range(9000)]))
