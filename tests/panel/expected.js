// The table that the Python functions give; see test_expected.py.

import { readFileSync } from "node:fs";

export const expected = JSON.parse(readFileSync(new URL("expected.json", import.meta.url), "utf-8"));
