"""Generates genconf/serve/ in the working folder: `python3 genconf VARIANT VERSION SOFTWARE_FOLDER`.

Called by the artifact, which has unpacked itself into SOFTWARE_FOLDER. If the configuration is invalid, writes no files, prints a line
`key: message` for each problem on stderr, and ends with exit code 1.
"""

import os
import sys
from pathlib import Path

import addresses
import configuration
import enterprise
import serve


def main(variant: str, version: str, software: Path) -> int:
    os.umask(0o077)
    folder = Path("genconf")
    try:
        raw = configuration.read(folder / "config.yaml")
        problems = configuration.problems(raw, folder) + addresses.problems(raw, folder)
        problems += enterprise.problems(raw, folder) if variant == "enterprise" else enterprise.refused_keys(raw)
        if problems:
            raise configuration.Refused(problems)
        serve.write(raw, serve.Release(variant, version, software), folder)
    except configuration.Refused as refused:
        print("\n".join(refused.problems), file=sys.stderr)
        return 1
    print(f"genconf: wrote {folder / 'serve'} for {len(serve.members(raw))} nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
