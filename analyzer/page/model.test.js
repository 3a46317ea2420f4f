"use strict";
// node --test analyzer/page: what the page computes, against plain lists.
const test = require("node:test"), assert = require("node:assert/strict");
const m = require("./model.js");

// pack is the inverse of unpack.
function pack(times, blocks) {
  const buffer = new ArrayBuffer(8 * times.length + 20 * blocks.length);
  let at = 0;
  const put = (type, values) => {
    new type(buffer, at, values.length).set(values);
    at += type.BYTES_PER_ELEMENT * values.length;
  };
  put(Float64Array, times);
  put(Float64Array, blocks.map((b) => b.size));
  put(Uint32Array, blocks.map((b) => b.born));
  put(Uint32Array, blocks.map((b) => b.died));
  put(Uint32Array, blocks.map((b) => b.owner));
  return m.unpack(buffer, times.length, blocks.length);
}

// story makes blocks that come and go by a simple generator of numbers.
function story(events, seed) {
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), Math.floor((state / 2147483648) * n));
  const times = [], blocks = [], live = [];
  let time = 0;
  for (let e = 0; e < events; e++) {
    times.push((time += random(1000)));
    if (live.length && random(2)) blocks[live.splice(random(live.length), 1)[0]].died = e;
    else live.push(blocks.push({size: 1 + random(1e6), born: e, died: events, owner: random(5)}) - 1);
  }
  return {times, blocks, model: pack(times, blocks)};
}

const liveIn = (blocks, event) => blocks.filter((b) => b.born <= event && event < b.died);
const sum = (blocks) => blocks.reduce((total, b) => total + b.size, 0);

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
  m.setClock(model, true);
  const picture = m.columns(model, 0, 400, 400, [0, 0, 0, 0, 0], 1);
  picture.total.forEach((total, c) => assert.equal(total, Math.max(totals[c], c ? totals[c - 1] : 0)));
  m.setClock(model, false);
  assert.equal(model.clock, model.times);
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

test("sizes and times are written as in the report", () => {
  assert.deepEqual([0, 1023, 1024, 10235, 10240, 1048575, 3.1 * 2 ** 30].map(m.sizeText), ["0 B", "1023 B", "1.00 KiB", "10.0 KiB", "10.0 KiB", "1.00 MiB", "3.10 GiB"]);
  assert.deepEqual([5, 1500, 352.3e6, 1.109e9].map(m.timeText), ["5 ns", "1.500 us", "352.3 ms", "1.109 s"]);
});

test("ticks are round and inside", () => {
  assert.deepEqual(m.ticks(0, 3.5 * 2 ** 30, 5, true), [0, 2 ** 30, 2 ** 31, 3 * 2 ** 30]);
  assert.deepEqual(m.ticks(0, 1000, 5, false), [0, 200, 400, 600, 800, 1000]);
});
