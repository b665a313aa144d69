"""The same with the key derived in a thread: the loop is free, and the derivation is the work."""
import asyncio
import hashlib


def key_of(number):
    return hashlib.pbkdf2_hmac("sha256", b"%d" % number, b"salt", 120_000)  # answer


async def login(number):
    await asyncio.sleep(0.001)
    return await asyncio.to_thread(key_of, number)  # also


async def main():
    keys = await asyncio.gather(*(login(number) for number in range(40)))  # also
    print(len(keys))


asyncio.run(main())  # also
