"use strict";
// node --test internal/page/script/test: what the page computes, against plain lists.
const test = require("node:test"), assert = require("node:assert/strict");
const m = require("../model.js"), {pack, story, liveIn, sum} = require("./story.js");

test("what is live at an event is what a plain list says", () => {
  for (let seed = 1; seed < 20; seed++) {
    const {blocks, model, times} = story(300, seed);
    for (const event of [0, 1, 150, 299]) {
      const live = m.liveAt(model, event), want = liveIn(blocks, event);
      assert.equal(live.total, sum(want));
      live.bytes.forEach((bytes, owner) => assert.equal(bytes, sum(want.filter((b) => b.owner === owner))));
    }
    const totals = times.map((_, event) => sum(liveIn(blocks, event)));
    assert.equal(m.highest(model, 0, 299), totals.indexOf(Math.max(...totals)));
    assert.equal(m.highest(model, 100, 200), 100 + totals.slice(100, 201).indexOf(Math.max(...totals.slice(100, 201))));
  }
});

test("columns lose no maximum, and their layers add up", () => {
  for (let seed = 1; seed < 20; seed++) {
    const {blocks, model, times} = story(400, seed), totals = times.map((_, event) => sum(liveIn(blocks, event)));
    for (const [from, to, count] of [[0, times.at(-1), 37], [times[50], times[300], 10], [0, times.at(-1), 3000]]) {
      const layerOf = [0, 1, 2, 2, 2], picture = m.columns(model, from, to, count, layerOf, 3);
      const inside = totals.filter((_, event) => times[event] >= from && times[event] <= to);
      const before = m.eventAt(model, from - 1e-9);
      assert.equal(Math.max(...picture.total), Math.max(...inside, before < 0 ? 0 : totals[before]));
      picture.total.forEach((total, c) => {
        const layers = [...picture.bytes.slice(c * 3, c * 3 + 3)];
        assert.equal(layers[0] + layers[1] + layers[2], total);
        assert.equal(total, picture.event[c] < 0 ? 0 : totals[picture.event[c]]);
      });
    }
  }
});

test("pictures go by time, or by events", () => {
  const {model, blocks} = story(400, 3), totals = [...Array(400).keys()].map((event) => sum(liveIn(blocks, event)));
  const picture = m.columns(model, 0, 400, 400, [0, 0, 0, 0, 0], 1, true);
  picture.total.forEach((total, c) => assert.equal(total, Math.max(totals[c], c ? totals[c - 1] : 0)));
  assert.deepEqual([0, 1, 399, 400].map((c) => picture.times[c]), [0, 1, 399, 399].map((event) => m.timeAt(model, event)));
});

test("events that crowd are noticed", () => {
  const even = pack([...Array(100).keys()], [{size: 1, born: 0, died: 100, owner: 0}]);
  const late = pack([...Array(100).keys()].map((n) => 1000 + n), [{size: 1, born: 0, died: 100, owner: 0}]);
  assert.equal(m.crowded(even, 100), false);
  assert.equal(m.crowded(late, 1200), true);
});

test("an event is found by its time", () => {
  const model = pack([0, 10, 10, 20], [{size: 1, born: 0, died: 4, owner: 0}, {size: 1, born: 1, died: 3, owner: 0}, {size: 1, born: 2, died: 4, owner: 0}]);
  assert.deepEqual([-1, 0, 9, 10, 19, 20, 99].map((time) => m.eventAt(model, time)), [-1, 0, 0, 2, 2, 3, 3]);
});

test("peaks that stand out are found, and noise is none", () => {
  const times = [], blocks = [];
  const spike = (size) => blocks.push({size, born: times.push(times.length) - 1, died: times.push(times.length) - 1, owner: 0});
  spike(1000);
  spike(3);
  spike(700);
  const model = pack(times, blocks);
  assert.deepEqual(m.summits(model), [0, 4]);
});

test("rows of one name are one row, most first", () => {
  const live = {bytes: Float64Array.of(5, 7, 1), count: Uint32Array.of(1, 2, 1), total: 13};
  assert.deepEqual(m.grouped(live, [0, 1, 0], ["a", "b"]), [{name: "b", bytes: 7, count: 2}, {name: "a", bytes: 6, count: 2}]);
});

test("call stacks become a tree, outermost frames first", () => {
  const root = m.tree({bytes: Float64Array.of(5, 7)}, [[3, 1], [2, 1]]);
  assert.equal(root.bytes, 12);
  assert.equal(root.children.get(1).bytes, 12);
  assert.deepEqual([...root.children.get(1).children.values()].map((node) => [node.frame, node.bytes]), [[3, 5], [2, 7]]);
});

test("a moment is told from the checkpoint before it, wherever that lies", () => {
  for (const apart of [1, 7, 64, 10000]) {
    const {blocks, model} = story(500, 5, {apart});
    for (let event = -1; event < 500; event++) assert.equal(m.liveAt(model, event).total, sum(liveIn(blocks, event)));
    assert.ok(model.checkpoints.reduce((total, c) => total + c.blocks.length, 0) <= 500 + model.blocks);
  }
});

test("a brush costs what the picture is wide, not what the run is long", () => {
  const width = 200, layers = [0, 0, 1, 1, 2], cost = [];
  for (const events of [60_000, 480_000]) {
    const {model, times} = story(events, 2, {apart: 1 << 12}), live = m.liveAt(model, events - 1).count.reduce((a, b) => a + b, 0);
    for (const _ of m.layering(model, layers, 3));
    model.visited = 0;
    m.columns(model, times[events >> 3], times[events - 1], width, layers, 3, false);
    m.columns(model, events >> 3, events, width, layers, 3, true);
    assert.ok(model.visited <= 2 * (width * 3 * m.chunkEvents + events / m.chunkEvents), model.visited + " steps for " + events + " events");
    cost.push(model.visited);
    model.visited = 0;
    m.highest(model, events >> 3, events - 1);
    m.lifetimes(model, events >> 3, events - 1);
    m.totalAt(model, events - 7);
    assert.ok(model.visited <= 5 * m.chunkEvents + (2 * events) / m.chunkEvents, model.visited + " steps for a stretch of " + events + " events");
    model.visited = 0;
    m.liveAt(model, events - 1);
    m.bornSince(model, events >> 3, events - 1);
    assert.ok(model.visited <= 2 * (2 * Math.max(1 << 12, 2 * live) + live), model.visited + " steps for a moment with " + live + " blocks");
  }
  assert.ok(cost[1] < 4 * cost[0], cost[1] + " steps, " + cost[0] + " for an eighth of the events");
});

test("a block takes forty bytes at most, checkpoints and sums included", () => {
  for (const apart of [1 << 12, 1 << 15]) {
    const {model} = story(200_000, 4, {apart}), arrays = Object.values(model).concat(model.checkpoints.map((point) => point.blocks)).filter(ArrayBuffer.isView);
    const bytes = arrays.reduce((total, array) => total + array.byteLength, 0);
    assert.ok(bytes / model.blocks > 20 && bytes / model.blocks <= 40, bytes / model.blocks + " bytes a block");
  }
});

test("what came since a moment and stayed, and how long the rest lived", () => {
  const {blocks, model, times} = story(400, 4), edge = 100, event = 350;
  const stayed = liveIn(blocks, event).filter((b) => b.born > edge), ended = blocks.filter((b) => b.died > edge && b.died <= event);
  assert.equal(m.bornSince(model, edge, event).total, sum(stayed));
  const rows = m.lifetimes(model, edge, event);
  assert.equal(rows.reduce((total, row) => total + row.count, 0), ended.length);
  assert.equal(rows.reduce((total, row) => total + row.bytes, 0), sum(ended));
  for (const row of rows) assert.equal(row.count, ended.filter((b) => times[b.died] - times[b.born] < row.below && (times[b.died] - times[b.born] >= row.below / 10 || row.below === 1000)).length);
});

test("the largest blocks are those of a plain list", () => {
  const {blocks, model} = story(400, 6), want = liveIn(blocks, 300).filter((b) => b.owner !== 2).map((b) => b.size).sort((a, b) => b - a).slice(0, 5);
  assert.deepEqual(m.largest(model, 300, 5, (b) => model.owner[b] !== 2).map((b) => m.sizeAt(model, b)), want);
});

test("a crossed table adds up both ways", () => {
  const {model} = story(300, 8), live = m.liveAt(model, 299), table = m.crossed(live, [0, 0, 1, 1, 2], ["a", "b", "c"], [0, 1, 0, 1, 0], ["x", "y"]);
  for (const row of table.rows) assert.equal(row.cells.reduce((a, b) => a + b, 0), row.bytes);
  const columns = new Map(m.grouped(live, [0, 1, 0, 1, 0], ["x", "y"]).map((row) => [row.name, row.bytes]));
  table.columns.forEach((name, n) => assert.equal(table.rows.reduce((total, row) => total + row.cells[n], 0), columns.get(name)));
});

test("names keep their own colours, and no two share one while there are enough", () => {
  const own = {Parameters: 0, "Feature maps": 3};
  assert.deepEqual(m.coloursOf(["Feature maps", "a", "Parameters", "b", "constructor"], own), [3, 1, 0, 2, 4]);
  assert.equal(new Set(m.coloursOf([..."abcdefghijkl"], own)).size, 12);
});

test("what a layer holds is part of what is live", () => {
  const {model} = story(300, 9), live = m.liveAt(model, 299), layerOf = [0, 1, 0, 1, 2], parts = [0, 1, 2].map((layer) => m.liveOf(live, layerOf, layer));
  assert.equal(parts.reduce((total, part) => total + part.total, 0), live.total);
  assert.equal(parts[1].bytes[0] + parts[1].count[2], 0);
});
