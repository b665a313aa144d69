import asyncio


async def fetch(number):
    await asyncio.sleep(0.02)
    return number * 2


async def main():
    return [await fetch(number) for number in range(80)]  # answer


print(sum(asyncio.run(main())))  # also
