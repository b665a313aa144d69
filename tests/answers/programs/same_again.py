import json

CONFIG = json.dumps({f"key{n}": list(range(20)) for n in range(400)})


def setting(name):
    return json.loads(CONFIG)[name]  # answer


print(sum(len(setting(f"key{n % 400}")) for n in range(1500)))
