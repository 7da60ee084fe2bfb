"""The tests; each folder of the program has one of its own here."""
