"""The pure domain of gputide: no I/O, no clock, no global state."""
