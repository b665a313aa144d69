import sqlite3

db = sqlite3.connect(":memory:")
db.execute("create table orders (id integer primary key, customer text)")
db.execute("create table lines (order_id integer, price real)")
db.executemany("insert into orders values (?, ?)", [(n, f"c{n % 97}") for n in range(2000)])
db.executemany("insert into lines values (?, ?)", [(n % 2000, n * 0.5) for n in range(12000)])


def lines_of(order):
    return db.execute("select price from lines where order_id = ?", (order,)).fetchall()  # answer


def report():
    totals = {}
    for order, customer in db.execute("select id, customer from orders").fetchall():
        totals[customer] = totals.get(customer, 0.0) + sum(price for (price,) in lines_of(order))
    return totals


print(len(report()))
