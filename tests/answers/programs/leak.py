CACHE = {}


def handle(request):
    CACHE[request] = "x" * 500 + str(request)  # answer
    return sum(range(2000)) + len(CACHE[request])  # also


print(sum(handle(number) for number in range(40000)))
