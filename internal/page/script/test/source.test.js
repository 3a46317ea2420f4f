"use strict";
// Answers from the page's blocks and from a server have the same shape and values.
const test = require("node:test"), assert = require("node:assert/strict");
const {story, liveIn, sum} = require("./story.js"), {localSource, remoteSource} = require("../source.js");

const facts = {end: 1e9, events: 300, places: 0, owners: [0, 1, 2, 3, 4].map((n) => ({k: [n % 2], f: []})), keys: [["even", "odd"]], by: ["parity"]};

test("the page answers for moments, stretches and peaks", async () => {
  const {blocks, model} = story(300, 9), source = localSource(facts, model, null);
  const now = await source.moment({event: 200, edge: 50});
  assert.equal(now.live.total, sum(liveIn(blocks, 200)));
  assert.equal(now.before.total, sum(liveIn(blocks, 50)));
  assert.equal(now.since.total, sum(liveIn(blocks, 200).filter((b) => b.born > 50)));
  assert.equal((await source.moment({event: 200, edge: null})).since, null);
  assert.equal((await source.largest({event: 200, limit: 1, find: ""}))[0].size, Math.max(...liveIn(blocks, 200).map((b) => b.size)));
  assert.deepEqual((await source.largest({event: 200, limit: 9, find: "odd"})).map((b) => b.size), liveIn(blocks, 200).filter((b) => b.owner % 2).map((b) => b.size).sort((a, b) => b - a).slice(0, 9));
  const weights = await source.weights({by: 0});
  assert.equal(weights.length, 2);
  const peak = await source.highest(0, 1e12, false);
  assert.equal(await source.summit(299, 1), -1);
  assert.ok((await source.summit(300, -1)) <= 299 && peak >= 0);
  assert.equal(await source.segments(10), null);
});

test("a server's answers are put into the same shape", async () => {
  const asked = [], source = remoteSource({...facts, crowded: true, segmented: true}, async (name, values) => {
    asked.push(name + "?" + new URLSearchParams(values));
    if (name === "moment") return {time: 7, live: [[1, 10, 2], [4, 5, 1]], before: [[1, 3, 1]], since: [], edge_time: 2, lives: []};
    return name === "event" ? {value: 12} : {};
  });
  const now = await source.moment({event: 3, edge: 1});
  assert.deepEqual([now.live.total, now.live.bytes[4], now.live.count[1], now.before.total, now.since.total, now.edgeTime], [15, 5, 2, 3, 0, 2]);
  assert.equal(await source.eventAt(5.5, true), 12);
  await source.columns({from: 0, to: 9, count: 3, byEvents: false, layers: {by: 0, shown: [1, 0]}});
  await source.largest({event: 3, limit: 2, find: "odd"});
  await source.segments(3);
  assert.deepEqual(asked, ["moment?event=3&edge=1", "event?position=5.5&axis=events", "columns?from=0&to=9&count=3&axis=time&by=0&shown=1%2C0", "largest?event=3&limit=2&find=odd", "segments?event=3"]);
});
