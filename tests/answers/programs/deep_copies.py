import copy

STATE = {"grid": [[0] * 30 for _ in range(30)], "moves": []}


def play(moves):
    state = STATE
    for move in range(moves):
        state = copy.deepcopy(state)  # answer
        state["grid"][move % 30][move % 7] = move
    return state


print(sum(map(sum, play(1000)["grid"])))
