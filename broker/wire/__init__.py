"""What the broker and its clients say to each other: messages, error codes, events and their versions.

Pydantic and `market`'s values alone; no server, no database, no numpy enters here.
"""
