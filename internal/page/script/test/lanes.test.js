"use strict";
const test = require("node:test"), assert = require("node:assert/strict");
const {phaseParts, phasesBetween} = require("../lanes.js");

const lane = {phases: ["forward", "backward", "optimizer"], items: [{from: 10, to: 20, parts: [[0, 10]]}, {from: 30, to: 30, parts: [[1, 0]]}, {from: 40, to: 60, parts: [[0, 5], [2, 15]]}]};

test("the phases of a stretch are those that it touches", () => {
  for (const [from, to, want] of [[0, 9, []], [0, 10, ["forward"]], [20, 20, ["forward"]], [21, 29, []], [15, 35, ["forward", "backward"]], [55, 99, ["forward", "optimizer"]], [0, 99, lane.phases], [61, 99, []]])
    assert.deepEqual(phasesBetween(lane, from, to), want, from + " to " + to);
});

test("a stretch is divided without a gap, and none of its phases is lost", () => {
  for (const {parts} of lane.items.concat({parts: [[1, 0], [0, 0]]})) {
    const seen = [];
    phaseParts(parts, 100, 200, (phase, from, to) => seen.push([phase, from, to]));
    assert.deepEqual(seen.map((part) => part[0]), parts.map((part) => part[0]));
    assert.equal(seen[0][1], 100);
    assert.ok(Math.abs(seen.at(-1)[2] - 200) < 1e-9);
    seen.forEach(([, from, to], i) => assert.ok(to > from && (!i || from === seen[i - 1][2])));
  }
});
