import torch


def hits(scores, labels):
    found = 0
    for row in range(len(labels)):
        if scores[row].argmax().item() == labels[row].item():  # answer
            found += 1
    return found


torch.manual_seed(0)
print(hits(torch.randn(60000, 10), torch.randint(0, 10, (60000,))))
