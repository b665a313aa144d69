import sys


def main():
    print(sum(int(word) for word in sys.argv[1:]))


main()
