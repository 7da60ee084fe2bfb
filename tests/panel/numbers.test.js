import assert from "node:assert/strict";
import { test } from "node:test";

import {
  group,
  mibText,
  NONE,
  percentText,
  significant,
  weightText,
} from "../../visuals/panel/scripts/numbers.js";
import { expected } from "./expected.js";

test("numbers have the digits that Python gives them", () => {
  for (const [value, text] of expected.significant) assert.equal(significant(value), text, `${value}`);
  assert.equal(significant(null), NONE);
  assert.equal(significant(NaN), NONE);
});

test("whole numbers have their thousands parted as in Python", () => {
  for (const [count, text] of expected.group) assert.equal(`${group(count)} token${count === 1 ? "" : "s"}`, text);
});

test("shares are those of Python", () => {
  for (const [ratio, text] of expected.share) assert.equal(percentText(ratio), text, `${ratio}`);
});

test("a share too small for digits says so", () => {
  assert.equal(percentText(0.00009), "< 0.01\u00a0%");
  assert.equal(percentText(0), "< 0.01\u00a0%");
});

test("a hundred MiB and more are whole", () => {
  assert.equal(mibText(1234.4), "1,234");
  assert.equal(mibText(13.84), "13.8");
});

test("a weight that is not a number says so", () => {
  assert.equal(weightText(NaN), "is not a number (NaN)");
  assert.equal(weightText(0), "0");
  assert.equal(weightText(0.1234567), "0.123457");
});
