"""The broker's events as they come, in order, each once: server-sent events with resume after a cut.

The parser is our own since line splitters of text libraries also split at U+2028, which JSON may hold.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from broker.client.errors import BrokerAway, BrokerGarbled
from broker.client.http import Client
from broker.wire.market import EventView

RESUME_WAITS = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each try to resume; an event that arrives starts them anew."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event: the last id said so far, its name and its data."""

    id: str
    event: str
    data: str


def follow(
    client: Client,
    *,
    after: int | None = None,
    resume_waits: tuple[float, ...] = RESUME_WAITS,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[EventView]:
    """Every event after `after` (from now on when None), without end.

    A cut is mended by resuming after the last event; `BrokerAway` once all `resume_waits` have passed without one,
    `BrokerRefused` or `BrokerGarbled` at once.
    """
    last, waits = after, iter(resume_waits)
    while True:
        cut: BrokerAway | None = None
        try:
            with client.event_stream(last) as chunks:
                for frame in frames(chunks):
                    if not frame.data:
                        last = int(frame.id) if frame.id.isdecimal() else last
                    elif (event := _event(frame, client.url)).seq > (-1 if last is None else last):
                        last, waits = event.seq, iter(resume_waits)
                        yield event
        except BrokerAway as error:
            cut = error
        wait = next(waits, None)
        if wait is None:
            raise cut or BrokerAway(f"{client.url} closes its event stream again and again; try again later")
        sleep(wait)


def frames(chunks: Iterable[bytes]) -> Iterator[Frame]:
    """The events in a byte stream (WHATWG HTML, section 9.2.6); one that is cut off is dropped.

    A block with an id and no data says where to resume from; it is given with empty data.
    """
    last_id, name, data, moved = "", "", list[str](), False
    for line in _lines(chunks):
        if not line:
            if data or moved:
                yield Frame(last_id, name or "message", "\n".join(data))
            name, data, moved = "", [], False
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id, moved = value, True


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines end with CR LF, LF or CR, and with nothing else; what stands after the last end is dropped."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    rest = ""
    for chunk in chunks:
        rest += decoder.decode(chunk)
        held = "\r" if rest.endswith("\r") else ""  # its LF may come with the next chunk
        *lines, rest = rest.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rest += held
        yield from lines


def _event(frame: Frame, url: str) -> EventView:
    try:
        return EventView.model_validate_json(frame.data)
    except ValidationError:
        raise BrokerGarbled(f"{url} sent an event that this gputide does not understand: {frame.event}") from None
