"use strict";
// Blocks for tests, packed as the page has them, and a plain list of the same.
const u = require("../unpack.js");

// planes are a column's bytes, as the page has them: the inverse of reader.
function planes(count, values) {
  const bytes = [];
  for (let plane = 0; plane < count; plane++) for (const v of values) bytes.push(Math.floor(v / 256 ** plane) % 256);
  return bytes;
}

// pack puts blocks into columns and unpacks them, in pieces of so many bytes.
function pack(times, blocks, {apart, piece = 1000, unit = 1} = {}) {
  const sizes = [...new Set(blocks.map((b) => b.size))], owners = new Array(blocks.reduce((most, b) => Math.max(most, b.owner + 1), 0));
  const place = new Map(sizes.map((size, i) => [size, i])), columns = [planes(4, blocks.map((b) => (b.died < times.length ? b.died - b.born : 0))), planes(4, blocks.map((b) => place.get(b.size))), planes(4, blocks.map((b) => b.owner)),
    planes(8, times.map((time, e) => time - (e ? times[e - 1] : 0)))];
  const bytes = Uint8Array.from(columns.flat()), unpacked = u.unpacker({events: times.length, blocks: blocks.length, sizes, unit, owners});
  for (let at = 0; at < bytes.length; at += piece) unpacked.take(bytes.subarray(at, at + piece));
  for (const steps = u.linking(unpacked, apart); !steps.next().done; );
  return unpacked.model;
}

// story makes blocks that come and go by a simple generator of numbers.
function story(events, seed, options) {
  let state = seed;
  const random = (n) => ((state = (state * 1103515245 + 12345) % 2147483648), Math.floor((state / 2147483648) * n));
  const times = [], blocks = [], live = [];
  let time = 0;
  for (let e = 0; e < events; e++) {
    times.push((time += random(1000)));
    if (live.length && random(2)) blocks[live.splice(random(live.length), 1)[0]].died = e;
    else live.push(blocks.push({size: 1 + random(1e6), born: e, died: events, owner: random(5)}) - 1);
  }
  return {times, blocks, model: pack(times, blocks, options)};
}

const liveIn = (blocks, event) => blocks.filter((b) => b.born <= event && event < b.died);
const sum = (blocks) => blocks.reduce((total, b) => total + b.size, 0);

module.exports = {planes, pack, story, liveIn, sum};
