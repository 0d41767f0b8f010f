"""The broker as operators run it: a process of its own, with what it says and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SMALL_POOL = """
name = "tiny"
simulated = true
[[models]]
name = "l4"
title = "NVIDIA L4"
memory_gb = 24
[[nodes]]
name = "n"
count = 1
cpu_milli = 8000
memory_gib = 64
[[nodes.devices]]
model = "l4"
count = 2
kind = "shared"
shapes = ["full", "half"]
"""


@dataclass(frozen=True, slots=True)
class Up:
    """A broker that serves: what it announced, and its process."""

    said: dict[str, Any]
    process: subprocess.Popen[str]
    log: Path

    @property
    def url(self) -> str:
        return str(self.said["url"])

    @property
    def token(self) -> str:
        return str(self.said["token"])

    def end(self, how: int = signal.SIGTERM) -> int:
        """Sends a signal and returns the exit status."""
        self.process.send_signal(how)
        return self.process.wait(30)


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of a broker."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GPUTIDE_")}
    return {**kept, **more}


def broker(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `gputide-broker` to its end."""
    command = [sys.executable, "-m", "broker", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment(**variables)
    )


@contextmanager
def up(folder: Path, *more: str, variables: Mapping[str, str] | None = None) -> Iterator[Up]:
    """A personal broker on a free port with a pool of two cards; killed in the end if it still runs."""
    folder.mkdir(exist_ok=True)
    pool, log = folder / "pool.toml", folder / "log"
    pool.write_text(SMALL_POOL)
    command = [
        sys.executable,
        "-m",
        "broker",
        "up",
        "--data-dir",
        str(folder),
        "--port",
        "0",
        "--pool",
        str(pool),
        *more,
    ]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(**(variables or {}))
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, log.read_text()
            yield Up(json.loads(line), process, log)
        finally:
            process.kill()


def listening_addresses(pid: int) -> set[str]:
    """The local addresses, as hexadecimal, of the TCP sockets on which a process listens."""
    links = (str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink())
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    rows = [
        row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}
