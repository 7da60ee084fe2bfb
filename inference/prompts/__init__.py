"""Prompt files to prompts: text, tables and JSON, with what was left out and why. No torch.

May import ``records``. Read ``prompt_files``, then the file for each kind (``table_prompts`` with
``csv_rows``, ``parquet_rows`` and ``parquet_pages``; ``json_prompts`` with ``orients``), then
``records`` and ``conversations``: what one row or element holds.
"""
