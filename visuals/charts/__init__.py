"""One panel's chart or words each: records in, Altair chart, rows or text out. No Streamlit.

May import ``inference``'s torch-free packages. Read ``theme`` (colours by meaning), ``units`` (the
only unit conversions), ``axes`` (how axes grow and rows are thinned), then any chart.
"""
