def report(rows):
    text = ""
    for row in rows:
        text += f"{row * 0.5:>12.4f};"  # answer
    return text


for _ in range(3):
    print(len(report(range(300000))))
