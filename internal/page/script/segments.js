"use strict";
// How blocks lie in the memory that the allocator took from the driver, without a document: tested by node.

// unpackPlaces reads where blocks lie: their addresses and devices.
function unpackPlaces(buffer, blocks, addresses) {
  const take = reader(buffer), list = take(8, addresses, new Float64Array(addresses));
  for (let i = 1; i < addresses; i++) list[i] += list[i - 1];
  return {address: Float64Array.from(take(4, blocks, new Uint32Array(blocks)), (n) => list[n]), device: Int16Array.from(take(2, blocks, new Uint16Array(blocks)))};
}

// segmentsAt are the segments behind an event, each with its blocks and holes in the order of addresses. Segments that touch and may be crossed are one. given has [born, died, address, size, device, joins].
function segmentsAt(model, places, given, event) {
  const list = [];
  for (const [born, died, address, size, device, joins] of given) {
    if (born > event || died <= event) continue;
    list.push({address, size, device, joins, blocks: [], held: 0, holes: [], hole: 0});
  }
  list.sort((a, b) => a.device - b.device || a.address - b.address);
  const segments = [];
  for (const s of list) {
    const last = segments[segments.length - 1];
    if (last && last.device === s.device && last.joins && s.joins && last.address + last.size === s.address) last.size += s.size;
    else segments.push(s);
  }
  const blocks = [];
  eachLive(model, event, (b) => blocks.push(b));
  blocks.sort((a, b) => places.device[a] - places.device[b] || places.address[a] - places.address[b]);
  let n = 0, outside = 0;
  for (const b of blocks) {
    const device = places.device[b], at = places.address[b];
    while (n < segments.length && (segments[n].device < device || (segments[n].device === device && segments[n].address + segments[n].size <= at))) n++;
    const s = segments[n];
    if (!s || s.device !== device || at < s.address || at + sizeAt(model, b) > s.address + s.size) outside += sizeAt(model, b);
    else s.blocks.push({block: b, at: at - s.address, size: sizeAt(model, b)});
  }
  for (const s of segments) {
    let end = 0;
    for (const b of s.blocks) {
      if (b.at > end) s.holes.push({at: end, size: b.at - end});
      end = Math.max(end, b.at + b.size);
      s.held += b.size;
    }
    if (s.size > end) s.holes.push({at: end, size: s.size - end});
    s.hole = s.holes.reduce((most, hole) => Math.max(most, hole.size), 0);
  }
  return {segments, outside};
}

// mapFacts sum the segments up. pinned is free memory in segments that blocks keep from going back to the driver, whole that in segments without any block.
function mapFacts(segments) {
  const facts = {size: 0, held: 0, holes: 0, largest: 0, pinned: 0, whole: 0, pin: null};
  for (const s of segments) {
    facts.size += s.size;
    facts.held += s.held;
    facts.holes += s.holes.length;
    facts.largest = Math.max(facts.largest, s.hole);
    if (!s.blocks.length) facts.whole += s.size;
    else facts.pinned += s.size - s.held;
    if (s.blocks.length && s.held * 8 <= s.size && (!facts.pin || s.size - s.held > facts.pin.size - facts.pin.held)) facts.pin = s; // a few bytes that keep a lot
  }
  return facts;
}

if (typeof module !== "undefined") {
  Object.assign(globalThis, require("./model.js"), require("./unpack.js"));
  module.exports = {unpackPlaces, segmentsAt, mapFacts};
}
