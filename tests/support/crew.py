"""Parallel work for tests: threads that begin together, and a crew of processes that does too.

Starting a process costs more than what it does here, so a crew is started once a test run and given work after work.
Work has two parts: `prepare(*order)` returns what is to be done, and every process has prepared before any begins.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from threading import Barrier
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE_S = 120
"""After it a process that does not answer is a failure, not a hung test run."""


def in_threads(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """What these jobs return, each in a thread of its own; all begin together."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        barrier.wait(PATIENCE_S)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


class Crew:
    """Processes that wait for work; they import what the tests need when they start (spawned, so nothing is shared)."""

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._members: list[tuple[Any, Connection]] = []
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._members.append((process, ours))

    def run(self, prepare: Callable[..., Callable[[], T]], orders: Sequence[tuple[Any, ...]]) -> list[T]:
        """What each of the prepared jobs returns, one a process, in the order of the orders."""
        hands = [connection for _, connection in self._members[: len(orders)]]
        assert len(hands) == len(orders)
        for hand, order in zip(hands, orders, strict=True):
            hand.send((prepare, order))
        for hand in hands:
            assert _answer(hand) == "ready"
        for hand in hands:
            hand.send("go")
        return [_answer(hand) for hand in hands]

    def dismiss(self) -> None:
        for process, connection in self._members:
            connection.close()
            process.join(timeout=PATIENCE_S)


def _answer(hand: Connection) -> Any:
    assert hand.poll(PATIENCE_S), "a process of the crew does not answer"
    answer, fault = hand.recv()
    assert fault is None, fault
    return answer


def _work(orders: Connection) -> None:
    import tests.support.rivals  # noqa: F401 - what the work needs is loaded before it comes

    while True:
        try:
            prepare, order = orders.recv()
        except EOFError:
            return
        try:
            job = prepare(*order)
            orders.send(("ready", None))
            orders.recv()
            orders.send((job(), None))
        except Exception:  # noqa: BLE001 - it is the parent's to report
            orders.send((None, traceback.format_exc()))
