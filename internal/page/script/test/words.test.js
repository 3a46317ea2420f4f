"use strict";
// Numbers as people read them.
const test = require("node:test"), assert = require("node:assert/strict");
const m = require("../words.js");

test("sizes and times are written as in the report", () => {
  assert.deepEqual([0, 1023, 1024, 10235, 10240, 1048575, 3.1 * 2 ** 30].map(m.sizeText), ["0 B", "1023 B", "1.00 KiB", "10.0 KiB", "10.0 KiB", "1.00 MiB", "3.10 GiB"]);
  assert.deepEqual([5, 1500, 352.3e6, 1.109e9, 46.509e9, 243.5e9].map(m.timeText), ["5 ns", "1.500 us", "352.3 ms", "1.109 s", "46.509 s", "4 min 03.50 s"]);
});

test("ticks are round and inside", () => {
  assert.deepEqual(m.ticks(0, 3.5 * 2 ** 30, 5, true), [0, 2 ** 30, 2 ** 31, 3 * 2 ** 30]);
  assert.deepEqual(m.ticks(0, 1000, 5, false), [0, 200, 400, 600, 800, 1000]);
});
