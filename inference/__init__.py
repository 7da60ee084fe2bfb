"""Runs a causal language model step by step, measures it and counts what it had to do."""
