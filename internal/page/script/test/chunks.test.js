"use strict";
// Runs of many chunks, against plain lists: what sums of chunks say is what their events say.
const test = require("node:test"), assert = require("node:assert/strict");
const m = require("../model.js"), u = require("../unpack.js"), {pack, story, liveIn, sum} = require("./story.js");

const events = 6 * m.chunkEvents + 77, stretches = [[0, events - 1], [1, 2 * m.chunkEvents], [m.chunkEvents - 1, m.chunkEvents], [m.chunkEvents, 3 * m.chunkEvents - 1], [700, 720], [m.chunkEvents * 5, events - 1], [-1, 5]];

// plainTotals are what is live behind each event.
function plainTotals(blocks) {
  const totals = new Array(events).fill(0);
  for (const b of blocks) {
    totals[b.born] += b.size;
    if (b.died < events) totals[b.died] -= b.size;
  }
  for (let e = 1; e < events; e++) totals[e] += totals[e - 1];
  return totals;
}

test("totals, highest moments and lifetimes of stretches", () => {
  for (let seed = 1; seed < 6; seed++) {
    const {blocks, model, times} = story(events, seed, {apart: 300}), totals = plainTotals(blocks);
    for (const [from, to] of stretches) {
      if (from >= 0) assert.equal(m.totalAt(model, from), totals[from]);
      const first = Math.max(from, 0), part = totals.slice(first, to + 1);
      assert.equal(m.highest(model, from, to), first + part.indexOf(part.reduce((a, b) => Math.max(a, b))));
      const ended = blocks.filter((b) => b.died > from && b.died <= to), rows = m.lifetimes(model, from, to);
      assert.equal(rows.reduce((total, row) => total + row.bytes, 0), sum(ended));
      for (const row of rows) assert.equal(row.count, ended.filter((b) => times[b.died] - times[b.born] < row.below && (times[b.died] - times[b.born] >= row.below / 10 || row.below === 1000)).length);
    }
  }
});

test("columns of every width have the highest moment and who held it then", () => {
  const layerOf = [0, 1, 2, 2, 2];
  for (let seed = 1; seed < 5; seed++) {
    const {blocks, model, times} = story(events, seed), totals = plainTotals(blocks);
    for (const [from, to] of stretches.slice(0, 6))
      for (const count of [1, 7, 100, 3000])
        for (const byEvents of [false, true]) {
          const [begin, end] = byEvents ? [from, to] : [times[from], times[to]], picture = m.columns(model, begin, end, count, layerOf, 3, byEvents);
          let e = byEvents ? from : times.findIndex((time) => time >= begin);
          for (let c = 0; c < count; c++) {
            let best = e ? totals[e - 1] : 0, at = e - 1;
            const edge = begin + ((c + 1) * (end - begin)) / count, position = (event) => (byEvents ? event : times[event]);
            for (; e < events && (position(e) < edge || (c + 1 === count && position(e) <= end)); e++) if (totals[e] > best) [best, at] = [totals[e], e];
            assert.deepEqual([picture.event[c], picture.total[c]], [at, best], seed + ": column " + c + " of " + count);
            if (c % 50) continue;
            const live = liveIn(blocks, at);
            assert.deepEqual([...picture.bytes.slice(c * 3, c * 3 + 3)], [0, 1, 2].map((layer) => sum(live.filter((b) => layerOf[b.owner] === layer))));
          }
        }
  }
});

// plainSummits looks at every event.
function plainSummits(totals) {
  const list = [], least = totals.reduce((a, b) => Math.max(a, b), 0) / 20;
  let high = 0, at = -1, low = 0;
  totals.forEach((live, e) => {
    if (at < 0) {
      low = Math.min(low, live);
      if (live >= low + least) [high, at] = [live, e];
    } else if (live > high) [high, at] = [live, e];
    else if (live <= high - least) {
      list.push(at);
      [at, low] = [-1, live];
    }
  });
  return at < 0 ? list : list.concat(at);
}

test("peaks are those of a plain list, where little happens and where much does", () => {
  for (let seed = 1; seed < 6; seed++) {
    const {blocks, model} = story(events, seed);
    assert.deepEqual(m.summits(model), plainSummits(plainTotals(blocks)));
  }
  const times = [...Array(events).keys()], blocks = [{size: 1e6, born: 0, died: 3000, owner: 0}];
  for (let e = 1; e + 1 < 3000; e += 2) blocks.push({size: 5, born: e, died: e + 1, owner: 0});
  blocks.push({size: 7, born: 2999, died: events, owner: 0});
  for (let e = 3001; e + 1 < events; e += 2) blocks.push({size: e > 3500 ? 2e6 : 5, born: e, died: e + 1, owner: 0});
  if ((events - 3001) % 2) blocks.push({size: 1, born: events - 1, died: events, owner: 0});
  assert.deepEqual(m.summits(pack(times, blocks)), plainSummits(plainTotals(blocks)));
});

test("times are exact however far apart events lie, in whatever pieces they come", () => {
  for (const step of [3, 2 ** 21, 2 ** 33, 2 ** 40])
    for (const [piece, unit] of [[1, 1], [7, 1000], [100_000, 1]]) {
      const count = 2 * m.chunkEvents + 5, times = [...Array(count).keys()].map((e) => e * step + (e > 600 ? 2 ** 35 : 0)), blocks = times.map((_, e) => ({size: 1 + (e % 3), born: e, died: count, owner: e % 2}));
      const model = pack(times, blocks, {piece, unit});
      times.forEach((time, e) => assert.equal(m.timeAt(model, e), time * unit));
      blocks.forEach((b, i) => assert.deepEqual([m.sizeAt(model, i), model.owner[i], model.born[i], model.died[i]], [b.size, b.owner, b.born, b.died]));
    }
});

test("weights are bytes times nanoseconds", async () => {
  const {blocks, model, times} = story(events, 3), end = times.at(-1) + 1000, weight = new Float64Array(2);
  await u.sliced(m.weighing(model, weight, [0, 1, 0, 1, 0], end));
  for (const group of [0, 1]) {
    const want = blocks.filter((b) => b.owner % 2 === group).reduce((total, b) => total + b.size * Math.max((b.died < events ? times[b.died] : end) - times[b.born], 1), 0);
    assert.ok(Math.abs(weight[group] - want) <= 1e-9 * want);
  }
});
