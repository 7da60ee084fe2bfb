"""The terms of the field that pages, report and README explain: one sentence each. No Streamlit.

Imports nothing of ours, so that whatever draws can use it. Read ``terms``, then ``glossary``;
``presenter`` has what presenter mode says, ``teaching`` what each recorded run shows.
"""
