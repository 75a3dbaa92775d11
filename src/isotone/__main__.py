"""``isotone`` and ``python -m isotone`` are the command line. Who interrupts it while it is loaded sees no traceback."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from isotone.cli import main as run

        run()
    except KeyboardInterrupt:
        print("isotone: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
