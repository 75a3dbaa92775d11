"""``python -m isotone`` is the command line."""

from isotone.cli import main

if __name__ == "__main__":
    main()
