"""One module a command: load, decide in `market`, apply guarded, in one unit of work. None imports another."""
