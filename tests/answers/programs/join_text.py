class Page:
    def __init__(self):
        self.text = ""

    def add(self, line):
        self.text = self.text + line + "\n"  # answer


page = Page()
for number in range(9000):
    page.add(f"line {number} of a page that grows and grows")
print(len(page.text))
