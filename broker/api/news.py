"""Wakes those who follow events. An edition that comes out while a reader is still reading is not missed."""

from __future__ import annotations

import asyncio


class News:
    """Belongs to one event loop. `edition` rises with every `publish`."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self.edition = 0
        self.closed = False

    async def publish(self) -> None:
        async with self._condition:
            self.edition += 1
            self._condition.notify_all()

    async def close(self) -> None:
        """Tells every reader to end."""
        self.closed = True
        await self.publish()

    async def beyond(self, edition: int) -> None:
        """Returns once a later edition is out, at once if it is already."""
        async with self._condition:
            await self._condition.wait_for(lambda: self.edition > edition)
