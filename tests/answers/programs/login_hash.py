"""A key is derived within the event loop while others wait for it."""
import asyncio
import hashlib


async def login(number):
    await asyncio.sleep(0.001)
    return hashlib.pbkdf2_hmac("sha256", b"%d" % number, b"salt", 120_000)  # answer


async def main():
    keys = await asyncio.gather(*(login(number) for number in range(40)))
    print(len(keys))


asyncio.run(main())
