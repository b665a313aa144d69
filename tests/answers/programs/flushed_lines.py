"""Each line is flushed."""
for number in range(500_000):
    print(number * 7 % 1001, flush=True)  # answer
