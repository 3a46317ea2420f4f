"use strict";
const test = require("node:test"), assert = require("node:assert/strict");
const m = require("../heat.js");

const facts = {names: ["rank 0", "rank 1", "rank 3", "pid 7"], ranks: [0, 1, 3, -1], groups: [0, 1, 0, 2], marks: {1: "differs"}, missing: [2], columns: ["iteration 1", "iteration 2"], kinds: [{name: "all memory", unit: 1024}, {name: "Parameters", unit: 1}]};
// two planes of each kind, by row and column: 1 + units, 0 for none
const buffer = Uint8Array.from([2, 3, 2, 5, 2, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, /**/ 1, 1, 9, 9, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]).buffer;

test("cells are bytes, and one that is not there is none", () => {
  const heat = m.heatOf(facts, buffer);
  assert.deepEqual([heat.cell(0, 0, 1), heat.cell(0, 2, 1), heat.cell(0, 3, 1), heat.cell(1, 1, 0)], [2048, -1, (256 + 3 - 1) * 1024, 8]);
  assert.deepEqual(m.medians(heat, 0, [0, 1, 2, 3]), [1024, 4096]);
  assert.deepEqual([m.medians(heat, 1, [0, 1, 2, 3]), m.medians(heat, 0, [0, 1]), m.medians(heat, 1, [])], [[0, 0], [1024, 3072], [0, 0]]);
});

test("without iterations the kinds are the columns", () => {
  const heat = m.heatOf({...facts, columns: ["the peak"]}, Uint8Array.from([1, 2, 3, 4, 0, 0, 0, 0, 0, 6, 7, 8, 0, 0, 0, 0]).buffer);
  assert.deepEqual(heat.columns, ["all memory", "Parameters"]);
  assert.deepEqual([heat.cell(0, 1, 0), heat.cell(0, 1, 1), heat.cell(0, 0, 1)], [1024, 5, -1]);
});

test("a deviation has the sign of the difference, and grows with it", () => {
  assert.deepEqual([m.deviation(4, 4), m.deviation(0, 0), m.deviation(8, 4), m.deviation(99, 4), m.deviation(2, 4), m.deviation(0, 4), m.deviation(4, 0)], [0, 0, 1, 1, -1, -1, 1]);
  assert.ok(m.deviation(41, 40) > 0.15 && m.deviation(41, 40) < m.deviation(50, 40));
});

test("rows are in the order of ranks, missing ones among them, or of groups", () => {
  const names = (byGroup) => m.orderOf(facts, byGroup).map((item) => item.name);
  assert.deepEqual(names(false), ["rank 0", "rank 1", "rank 2", "rank 3", "pid 7"]);
  assert.deepEqual(names(true), ["rank 0", "rank 3", "rank 1", "pid 7", "rank 2"]);
});

test("one row of a thousand that is marked, or that is stronger, is painted over the others", () => {
  for (const at of [0, 1, 500, 998, 999]) {
    const items = Array.from({length: 1000}, (_, i) => ({i, mark: i === at ? "differs" : ""}));
    m.place(items, 560);
    const seen = new Map(), strongest = at < 500 ? 777 : 222;
    for (const {item, top, bottom} of m.paintOrder(items, 560, (one) => (one.i === strongest ? 1 : 0))) {
      assert.ok(top >= 0 && bottom <= 560 && bottom > top);
      for (let y = top; y < bottom; y++) seen.set(y, item.i);
    }
    assert.equal(seen.size, 560, "a line is left out");
    assert.ok([...seen.values()].filter((i) => i === at).length >= 2, "rank " + at);
    assert.ok([...seen.values()].includes(strongest), "the strongest is hidden");
  }
});

test("texts beside rows are a gap apart and stay inside", () => {
  assert.deepEqual(m.spread([10, 12, 50], 13, 100), [10, 23, 50]);
  assert.deepEqual(m.spread([90, 95, 99], 13, 100), [74, 87, 100]);
  assert.equal(m.spread(Array(99).fill(5), 13, 100).length, 8);
});

test("how a value is to the median", () => {
  assert.deepEqual([[7, 4], [4, 4], [0, 0], [1, 0]].map(([value, median]) => m.timesText(value, median, "all")), ["1.75 times the median of all, 4 B", "as much as the median of all", "the median of all is 0 B", "the median of all is 0 B"]);
});
