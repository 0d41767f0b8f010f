"""A process that takes the lock of a database, says so, and holds it until it is killed.

`python -m tests.support.lock_holder URL`
"""

from __future__ import annotations

import signal
import sys

from broker.store import lock
from broker.store.database import Database


def main(url: str) -> None:
    lock.take(Database(url))
    sys.stdout.write("taken\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
