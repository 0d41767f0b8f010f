"""A broker in a process of its own that does one thing and is killed by SIGKILL at one failpoint on the way.

`python -m tests.support.crash_child URL SECRET NOW FAILPOINT SUBJECT KEY`: the first word of the failpoint is what is
done. It prints `survived` and ends with 0 if the failpoint was never passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

from broker.cache import MarketCache
from broker.clock import ManualClock
from broker.context import Context
from broker.failpoints import Failpoint, Work, kill_at
from broker.services import tokens
from broker.services.book import book
from broker.services.cancel import cancel, give_back
from broker.services.expire import expire_due
from broker.services.publish import publish
from broker.store.database import Database
from tests.support.brokers import Shop, ticket


def work(shop: Shop, what: Work, subject: str, key: str) -> object:
    """Does one unit of work on a shop; the test does the same again after the crash."""
    person = shop.operator
    given = ticket(person, f"{what} {subject}", key)
    doing: dict[Work, Callable[[], object]] = {
        Work.QUOTE: lambda: shop.quote(subject),
        Work.BOOK: lambda: book(shop.context, person, subject, given),
        Work.CANCEL: lambda: cancel(shop.context, person, subject, given),
        Work.GIVE_BACK: lambda: give_back(shop.context, person, subject, given),
        Work.EXPIRE: lambda: expire_due(shop.context),
        Work.PUBLISH: lambda: publish(shop.context),
    }
    return doing[what]()


def main(url: str, secret: str, now: str, failpoint: str, subject: str, key: str) -> None:
    armed = Failpoint(failpoint)
    database, clock = Database(url, kill_at(armed)), ManualClock(datetime.fromisoformat(now))
    context = Context(database=database, cache=MarketCache(database), clock=clock, zone_name="Europe/Berlin")
    shop = Shop(context, clock, tokens.authenticate(context, secret), secret)
    work(shop, Work(failpoint.partition(".")[0]), subject, key)
    sys.stdout.write("survived\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
