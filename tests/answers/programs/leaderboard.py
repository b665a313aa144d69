"""Keep the best scores of a tournament while the results come in."""
import random


class Entry:
    __slots__ = ("player", "score", "round")

    def __init__(self, player, score, round_):
        self.player = player
        self.score = score
        self.round = round_


class Leaderboard:
    def __init__(self, places):
        self.places = places
        self.entries = []
        self.leader_changes = 0
        self.leader = None

    def add(self, entry):
        self.entries.append(entry)
        self._refresh()  # also

    def _refresh(self):
        self.entries.sort(key=lambda e: e.score, reverse=True)  # answer
        top = self.entries[0]
        if top is not self.leader:
            self.leader = top
            self.leader_changes += 1

    def podium(self):
        return [(e.player, e.score) for e in self.entries[: self.places]]


def results(players, rounds, seed=11):
    rng = random.Random(seed)
    for round_ in range(rounds):
        for player in range(players):
            yield Entry(f"p{player}", rng.random() * (1 + round_), round_)


def main():
    board = Leaderboard(places=10)
    seen = 0
    for entry in results(players=250, rounds=48):
        board.add(entry)
        if entry.round % 5 == 0 and entry.player == "p0":
            seen += len(board.podium())
    print("leader changes", board.leader_changes, "shown", seen)
    for player, score in board.podium():
        print(player, round(score, 3))


if __name__ == "__main__":
    main()
