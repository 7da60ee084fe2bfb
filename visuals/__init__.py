"""Draws: records in, charts, text and pages out. No torch."""
