"""A set is made of the allowed names for each name that is looked up."""


def allowed_of(names, allowed):
    kept = []
    for name in names:
        if name in set(allowed):  # answer
            kept.append(name)
    return kept


allowed = [f"user{i}" for i in range(2000)]
print(len(allowed_of([f"user{i * 7 % 4000}" for i in range(30000)], allowed)))
