"""The HTTP API: one router a noun. Routes translate; they decide nothing."""
