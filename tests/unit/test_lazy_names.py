"""Public names that a file shares with its function."""

import subprocess
import sys


def test_a_function_keeps_its_name_beside_its_file():
    code = (
        "import isotone.release.verify, isotone.release.export\n"
        "import isotone as iso\n"
        "from isotone.release import export, verify\n"
        "assert verify is iso.verify and callable(export)\n"
        "from isotone.release.verify import verify as same\n"
        "assert same is verify\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
