"""Runs one bench and prints its figures beside the baselines measured in the same run."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tomllib
from pathlib import Path

AIMS = Path(__file__).with_name("aims.toml")
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> int:
    """Exit status 1 when `--check` finds an aim missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: shows that it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--check", action="store_true", help="exit 1 when an aim is missed")
    asked = parser.parse_args()
    result = importlib.import_module(f"tests.bench.{asked.name}").run(quick=asked.quick)
    aims = tomllib.loads(AIMS.read_text("utf-8")).get(asked.name, {})
    result = {"name": asked.name, **result, "aims": {key: aim["most"] for key, aim in aims.items()}}
    missed = [key for key, most in result["aims"].items() if result["figures"][key] > most]
    print(json.dumps(result, indent=None if asked.json else 2, sort_keys=True))
    for key in missed:
        print(f"missed: {key} is {result['figures'][key]}, aim {result['aims'][key]}", file=sys.stderr)
    return 1 if asked.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
