"""Server-sent events: the parser whatever the chunks, and resuming after a cut without loss or repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from broker.client.errors import BrokerAway, BrokerGarbled, BrokerRefused
from broker.client.events import Frame, follow, frames
from broker.client.http import Client
from tests.broker.client import samples

STREAM = (
    b"\xef\xbb\xbf: ping\r\n\r\n"
    b'id: 7\r\nevent: booking.confirmed\r\ndata: {"a":\r\ndata:  1}\r\n\r\n'
    b"data: umlaut \xc3\xa4, separator \xe2\x80\xa8 kept\n\n"
    b"id: 8\r\r"
    b"retry: 100\nnonsense\nevent: empty\n\n"
    b"data: cut off"
)
FRAMES = [
    Frame("7", "booking.confirmed", '{"a":\n 1}'),
    Frame("7", "message", "umlaut ä, separator \u2028 kept"),
    Frame("8", "message", ""),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_frames_do_not_depend_on_the_chunks(size: int) -> None:
    chunks = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert list(frames(chunks)) == FRAMES


def test_an_id_with_a_null_is_ignored() -> None:
    assert list(frames([b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n"])) == [
        Frame("1", "message", "a"),
        Frame("1", "message", "b"),
    ]


class Stream(httpx.SyncByteStream):
    """Bytes that end with a cut connection, or in good order."""

    def __init__(self, *chunks: bytes, cut: bool = True) -> None:
        self.chunks, self.cut = chunks, cut

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        if self.cut:
            raise httpx.ReadError("reset")


def told(*numbers: int) -> bytes:
    return b"".join(b"id: %d\ndata: %s\n\n" % (seq, samples.event(seq).model_dump_json().encode()) for seq in numbers)


class Broker:
    """Serves the streams in turn and notes from where each was asked."""

    def __init__(self, *replies: httpx.SyncByteStream | httpx.Response | Exception) -> None:
        self.replies = iter(replies)
        self.resumed: list[str | None] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.resumed.append(request.headers.get("Last-Event-ID"))
        reply = next(self.replies)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, httpx.Response) else httpx.Response(200, stream=reply)

    def numbers(self, after: int | None = None) -> Iterator[int]:
        client = Client("https://gpu.example.org", samples.TOKEN, transport=httpx.MockTransport(self))
        followed = follow(client, after=after, resume_waits=(1.0, 2.0), sleep=self.pauses.append)
        return (event.seq for event in followed)


def taken(numbers: Iterator[int], count: int) -> list[int]:
    return [next(numbers) for _ in range(count)]


def test_after_a_cut_it_goes_on_behind_the_last_event_and_repeats_none() -> None:
    broker = Broker(Stream(told(1, 2)), Stream(told(2, 3), cut=False), Stream(told(4)))
    assert taken(broker.numbers(), 4) == [1, 2, 3, 4]
    assert broker.resumed == [None, "2", "3"]
    assert broker.pauses == [1.0, 1.0]


def test_it_starts_behind_the_event_that_it_is_given() -> None:
    broker = Broker(Stream(told(8)))
    assert taken(broker.numbers(after=7), 1) == [8]
    assert broker.resumed == ["7"]


def test_a_place_told_without_an_event_is_resumed_from() -> None:
    broker = Broker(Stream(b"id: 5\n\n"), Stream(told(6)))
    assert taken(broker.numbers(), 1) == [6]
    assert broker.resumed == [None, "5"]


@pytest.mark.parametrize("silent", [Stream(), Stream(cut=False), httpx.ConnectError("refused")])
def test_it_gives_up_once_every_pause_has_passed_without_an_event(silent: Stream | Exception) -> None:
    broker = Broker(Stream(told(1)), *[silent] * 3)
    numbers = broker.numbers()
    assert next(numbers) == 1
    with pytest.raises(BrokerAway):
        next(numbers)
    assert broker.pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (
            lambda: httpx.Response(401, text=samples.problem("not_authenticated", 401, "no").model_dump_json()),
            BrokerRefused,
        ),
        (lambda: httpx.Response(502, text="bad gateway"), BrokerGarbled),
        (lambda: Stream(b"data: {}\n\n"), BrokerGarbled),
    ],
)
def test_a_refusal_and_a_garbled_event_end_it_at_once(reply: Callable[[], Stream], error: type[Exception]) -> None:
    broker = Broker(reply())
    with pytest.raises(error):
        next(broker.numbers())
    assert broker.pauses == []
