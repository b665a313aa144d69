import sqlite3

db = sqlite3.connect(":memory:")
db.execute("create table a (x integer)")
db.execute("create table b (y integer)")
db.executemany("insert into a values (?)", [(n % 5000,) for n in range(5000)])
db.executemany("insert into b values (?)", [(n * 7 % 5000,) for n in range(5000)])


def pairs():
    return db.execute("select count(*) from a, b where a.x + 0 = b.y + 0").fetchone()[0]  # answer


print(pairs())
