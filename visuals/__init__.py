"""Draws: records in, charts, text and pages out. No torch.

Read ``words`` (the glossary), ``charts`` (records to Altair charts), ``tour`` (the tour's
chapters), ``live`` (the hub of runs, frames, the live route), ``panel`` (what runs in the browser),
``pages`` (one thin script a page).
"""
