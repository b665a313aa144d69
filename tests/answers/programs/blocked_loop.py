import asyncio
import time


async def handle(number):
    time.sleep(0.015)  # answer
    await asyncio.sleep(0)
    return number


async def main():
    return await asyncio.gather(*(handle(number) for number in range(100)))


print(len(asyncio.run(main())))
