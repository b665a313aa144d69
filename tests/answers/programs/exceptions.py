VALUES = ["12", "x", "7.5", "", "n/a", "3"] * 150000


def number_of(text):
    try:
        return int(text)  # answer
    except ValueError:  # answer
        return 0


print(sum(number_of(text) for text in VALUES))
