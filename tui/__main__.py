"""`python -m tui` is `gputide`."""

from tui.cli import main

if __name__ == "__main__":
    main()
