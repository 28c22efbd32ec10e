"""``python -m aoti_inspect`` is the command itself."""

import subprocess
import sys

from aoti_inspect import find_binary

if __name__ == "__main__":
    sys.exit(subprocess.call([find_binary(), *sys.argv[1:]]))
