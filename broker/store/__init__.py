"""Database sessions, tables and repositories: every query of the broker lives here, one repository a noun."""
