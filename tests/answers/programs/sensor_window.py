"""Smooth a day of sensor readings and report the alarms."""
import random


class Channel:
    def __init__(self, name, readings):
        self.name = name
        self.readings = readings


def make_channel(name, count, seed):
    rng = random.Random(seed)
    level = 200
    readings = []
    for _ in range(count):
        level += rng.randint(-3, 3)
        readings.append(level)
    return Channel(name, readings)


def window_mean(readings, end, width):
    start = max(0, end - width)
    return sum(readings[start:end]) / (end - start)  # answer


def smooth(channel, width):
    return [
        window_mean(channel.readings, end, width)  # also
        for end in range(1, len(channel.readings) + 1)
    ]


def alarms(channel, smoothed, limit):
    found = 0
    for raw, mean in zip(channel.readings, smoothed):
        if abs(raw - mean) > limit:
            found += 1
    return found


def main():
    channels = [make_channel(f"probe-{i}", 86_400, i) for i in range(4)]
    total = 0
    for channel in channels:
        smoothed = smooth(channel, 1_200)
        count = alarms(channel, smoothed, 60)
        print(channel.name, round(max(smoothed), 3), count)
        total += count
    print("alarms", total)


if __name__ == "__main__":
    main()
