"""`python -m tallyveil` is the program `tallyveil`."""

from tallyveil.cli import main

if __name__ == "__main__":
    main()
