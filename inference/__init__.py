"""Runs a causal language model step by step, measures it and counts what it had to do.

It draws nothing: neither ``visuals`` nor Streamlit, Altair or pandas is imported anywhere below.
Read ``records`` first, then ``engine`` (the loop and what it drives), then ``process`` (how the
loop runs apart from the page). The rest can be read in any order.
"""
