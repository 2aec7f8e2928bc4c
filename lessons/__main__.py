"""`python -m lessons`."""

import sys

from lessons.runner.commands import main

if __name__ == "__main__":
    sys.exit(main())
