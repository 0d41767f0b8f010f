"""Background loops of a broker: each does one small service again and again, and survives its faults."""
