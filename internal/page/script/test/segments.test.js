"use strict";
// Blocks in segments, against what a plain list of bytes says.
const test = require("node:test"), assert = require("node:assert/strict");
const {planes, pack} = require("./story.js"), {unpackPlaces, segmentsAt, mapFacts} = require("../segments.js");

test("places are unpacked", () => {
  const addresses = [0x7f0000000000, 0x7f0000000200, 0x7fffffffff00], of = [2, 0, 1], devices = [0, 1, 0xffff];
  const bytes = [planes(8, addresses.map((a, i) => a - (i ? addresses[i - 1] : 0))), planes(4, of), planes(2, devices)].flat();
  const places = unpackPlaces(Uint8Array.from(bytes).buffer, 3, 3);
  assert.deepEqual([...places.address], of.map((n) => addresses[n]));
  assert.deepEqual([...places.device], [0, 1, -1]);
});

// Three segments: one with holes around two blocks, one that two mappings make, and one without blocks; and a block that lies nowhere.
const blocks = [[100, 20], [150, 10], [290, 20], [900, 5]].map(([address, size], i) => ({size, born: i, died: 5, owner: 0, address})).concat({size: 7, born: 4, died: 5, owner: 0, address: 120});
const model = pack([0, 1, 2, 3, 4, 5], blocks);
const places = {address: Float64Array.from(blocks, (b) => b.address), device: new Int16Array(5)};
const given = [[0, 9, 100, 100, 0, 0], [0, 9, 300, 50, 0, 1], [0, 9, 250, 50, 0, 1], [0, 9, 500, 64, 0, 0], [4, 9, 700, 8, 0, 0], [0, 2, 600, 8, 0, 0]];

test("holes lie between blocks, and mappings that touch are one segment", () => {
  const {segments, outside} = segmentsAt(model, places, given, 3), [plain, mapped, empty] = segments;
  assert.equal(segments.length, 3);
  assert.equal(outside, 5);
  assert.deepEqual(plain.holes, [{at: 20, size: 30}, {at: 60, size: 40}]);
  assert.deepEqual([plain.held, plain.hole], [30, 40]);
  assert.deepEqual([mapped.address, mapped.size, mapped.held, mapped.holes.length], [250, 100, 20, 2]);
  assert.deepEqual(empty.holes, [{at: 0, size: 64}]);
});

test("facts name the segment that least keeps most of", () => {
  const facts = mapFacts(segmentsAt(model, places, given, 3).segments);
  assert.deepEqual({...facts, pin: null}, {size: 264, held: 50, holes: 5, largest: 64, pinned: 150, whole: 64, pin: null});
  const pinned = {size: 2 ** 21, held: 1024, holes: [], hole: 0, blocks: [{size: 1024}]};
  assert.equal(mapFacts([pinned, {size: 2 ** 20, held: 2 ** 19, holes: [], hole: 0, blocks: [{size: 2 ** 19}]}]).pin, pinned);
});
