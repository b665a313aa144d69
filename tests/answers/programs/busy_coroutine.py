"""A server's handler computes in Python while ten others wait for the event loop."""
import asyncio


def checksum(text):
    value = 7
    for letter in text:
        value = (value * 31 + ord(letter)) % 1_000_003  # answer
    return value


async def handle(number):
    await asyncio.sleep(0.001)
    return checksum("abc" * 30000 + str(number))  # also


async def main():
    total = 0
    for _ in range(3):
        total += sum(await asyncio.gather(*(handle(i) for i in range(60))))
    print(total)


asyncio.run(main())
