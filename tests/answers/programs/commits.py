import os
import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory(dir=".")
db = sqlite3.connect(os.path.join(folder.name, "shop.db"))
db.execute("create table events (id integer, text text)")


def add(number):
    db.execute("insert into events values (?, ?)", (number, "x" * 50))
    db.commit()  # answer


for number in range(500):
    add(number)
print("added")
db.close()
