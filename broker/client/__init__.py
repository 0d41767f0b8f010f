"""What every face shares: the HTTP client, events, credentials, and pure views that turn messages into lines of text.

It knows `broker.wire` and `market`'s values; no server, no database, no numpy, no widget enters here.
"""
