"""One thin script a page; besides ``app.py`` the only files that call Streamlit.

A page never loops and never waits. May import everything in ``visuals`` and the torch-free modules
of ``inference``. Read ``main`` (the navigation), then any page.
"""
