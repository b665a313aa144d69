import sys

import torch.utils.data  # answer


def main():
    print(sum(int(word) for word in sys.argv[1:]))


main()
