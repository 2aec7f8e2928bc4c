"""`python -m minipaged`: the same as the command `minipaged`."""

import sys

from minipaged.cli import main

if __name__ == "__main__":
    sys.exit(main())
