"""Engines at an address, watched from outside: what they are, and what arrives of a request, when.

May import records. No torch; httpcore2 for the wire, prometheus-client's parser for metrics. Read
``address``, ``timed_stream`` (reads with their times), ``stream_lines`` (bytes to events),
``openai_events`` and ``ollama_lines`` (events to what they say), ``recorder``, ``asking`` (a
request), then ``identify``, ``tries``, ``load`` and ``gauges``.
"""
