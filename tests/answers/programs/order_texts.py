"""A text of each order is made for a message that is not written."""
import logging

logging.basicConfig(level=logging.WARNING)
log = logging.getLogger("orders")


def total(orders):
    found = 0
    for order in orders:
        log.debug(f"order {order}")  # answer
        found += order["field1"]
    return found


orders = [{f"field{k}": n * k for k in range(60)} for n in range(4_000)]
print(sum(total(orders) for _ in range(10)))
