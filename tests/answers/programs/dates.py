from datetime import datetime

LINES = [f"2024-{1 + n % 12:02}-{1 + n % 28:02} 10:{n % 60:02}:00 GET /item/{n}" for n in range(120000)]


def parse(line):
    when = datetime.strptime(line[:19], "%Y-%m-%d %H:%M:%S")  # answer
    return when.hour + when.minute


print(sum(parse(line) for line in LINES))
