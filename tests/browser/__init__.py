"""Tests that drive the page in a browser; the browser is closed when the last of them ends."""
