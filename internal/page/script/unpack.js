"use strict";
// The model of blocks out of the page's columns, without a document: tested by node. It is made in steps, between which the page goes on.

// reader takes columns of planes from a buffer: see columns.go.
function reader(buffer) {
  const bytes = new Uint8Array(buffer);
  let at = 0;
  return (planes, count, column) => {
    for (let plane = 0; plane < planes; plane++, at += count) addPlane(column, 0, bytes, at, at + count, 256 ** plane);
    return column;
  };
}

// addPlane adds one byte each to rows of a column.
function addPlane(column, row, bytes, from, to, weight) {
  for (let at = from; at < to; at++, row++) if (bytes[at]) column[row] += bytes[at] * weight;
}

// filler puts bytes into columns as they come, so that they need not lie in one piece anywhere. What planes beyond the fourth say of a column with far goes there, by row.
function filler(columns) {
  let n = 0, plane = 0, row = 0;
  return (bytes) => {
    for (let at = 0; at < bytes.length && n < columns.length; ) {
      const {planes, count, column, far} = columns[n], weight = 256 ** plane, end = Math.min(bytes.length, at + count - row);
      if (far && plane > 3) {
        for (let i = at; i < end; i++) if (bytes[i]) far.set(row + i - at, (far.get(row + i - at) || 0) + bytes[i] * weight);
      } else addPlane(column, row, bytes, at, end, weight);
      row += end - at;
      at = end;
      if (row < count) continue;
      row = 0;
      if (++plane < planes) continue;
      plane = 0;
      n++;
    }
  };
}

// unpacker makes an empty model, and what takes the bytes of its columns: how long blocks live, their sizes and owners, and the times of events, each as what passed since the one before.
function unpacker({events, blocks, sizes, unit, owners}) {
  const numbers = (most) => (most > 65536 ? new Uint32Array(blocks) : new Uint16Array(blocks)), chunks = Math.ceil(events / chunkEvents);
  const model = {events, blocks, unit, owners: owners.length, visited: 0, sizes: Float64Array.from(sizes), sizeOf: numbers(sizes.length), owner: numbers(owners.length), born: new Uint32Array(blocks), died: new Uint32Array(blocks),
    change: new Int32Array(events), // by event: 1 + the block that begins, or minus that for one that ends
    base: new Float64Array(chunks), offset: new Uint32Array(events), // times in units: of each chunk's first event, and since then
    start: new Float64Array(chunks + 1), high: new Float64Array(chunks), low: new Float64Array(chunks), highEvent: new Uint32Array(chunks),
    livesCount: new Uint32Array(chunks * powers), livesBytes: new Float64Array(chunks * powers), checkpoints: [], layered: null};
  const far = new Map(); // of what passes, beyond 32 bits
  const take = filler([{planes: 4, count: blocks, column: model.died}, {planes: 4, count: blocks, column: model.sizeOf}, {planes: 4, count: blocks, column: model.owner}, {planes: 8, count: events, column: model.offset, far}]);
  return {model, take, far};
}

const checkpointEvents = 1 << 15;

// linking makes the model whole when its columns are filled.
function* linking({model, far}, apart = checkpointEvents) {
  const state = {time: 0, block: 0, live: 0};
  for (let chunk = 0; chunk < model.high.length; chunk++) {
    placeTimes(model, state, far, chunk);
    link(model, state, chunk);
    sumUp(model, state, chunk);
    if (chunk % chunksAtOnce === chunksAtOnce - 1) yield;
  }
  yield* checking(model, apart);
}

// placeTimes turns what passes between events into times since the chunk's first one. These take 64 bits where 32 are not enough.
function placeTimes(model, state, far, chunk) {
  const from = chunk << chunkShift, end = Math.min(from + chunkEvents, model.events);
  for (let e = from; e < end; e++) {
    state.time += model.offset[e] + (far.size ? far.get(e) || 0 : 0);
    if (e === from) model.base[chunk] = state.time;
    if (state.time - model.base[chunk] > 0xffffffff && model.offset instanceof Uint32Array) model.offset = Float64Array.from(model.offset);
    model.offset[e] = state.time - model.base[chunk];
  }
}

// link tells each event what it does. An event at which nothing ends is the next block's beginning; died holds how long blocks live, until they begin.
function link(model, state, chunk) {
  const {change, born, died, events} = model, end = Math.min((chunk + 1) << chunkShift, events);
  for (let e = chunk << chunkShift; e < end; e++) {
    if (change[e]) continue;
    const b = state.block++, life = died[b];
    born[b] = e;
    change[e] = b + 1;
    died[b] = life ? e + life : events;
    if (life) change[e + life] = -b - 1;
  }
}

// sumUp finds what is known of a chunk.
function sumUp(model, state, chunk) {
  const from = chunk << chunkShift, end = Math.min(from + chunkEvents, model.events);
  model.start[chunk] = state.live;
  let high = -1, low = Infinity, at = from;
  for (let e = from; e < end; e++) {
    state.live += step(model, e);
    if (state.live > high) {
      high = state.live;
      at = e;
    }
    low = Math.min(low, state.live);
    const b = -model.change[e] - 1;
    if (b < 0) continue;
    const row = chunk * powers + powerOf(timeAt(model, e) - timeAt(model, model.born[b]));
    model.livesCount[row]++;
    model.livesBytes[row] += sizeAt(model, b);
  }
  model.high[chunk] = high;
  model.low[chunk] = low;
  model.highEvent[chunk] = at;
  model.start[chunk + 1] = state.live;
}

// checking lists the blocks that are live before some of the events. They stand as far apart as the list before is long, so that all of them together are not longer than the events.
function* checking(model, apart) {
  model.checkpoints = [{event: 0, blocks: new Uint32Array(0)}];
  for (;;) {
    const last = model.checkpoints[model.checkpoints.length - 1], event = last.event + Math.max(apart, last.blocks.length), live = [];
    if (event >= model.events) return;
    for (const b of last.blocks) if (model.died[b] >= event) live.push(b);
    for (let e = last.event; e < event; e++) if (model.change[e] > 0 && model.died[model.change[e] - 1] >= event) live.push(model.change[e] - 1);
    model.checkpoints.push({event, blocks: Uint32Array.from(live)});
    yield;
  }
}

const sliceMilliseconds = 12;

// sliced goes through steps, and lets the page do something else from time to time.
async function sliced(steps) {
  for (let begun = performance.now(); !steps.next().done; ) {
    if (performance.now() - begun < sliceMilliseconds) continue;
    await (globalThis.scheduler && scheduler.yield ? scheduler.yield() : new Promise((done) => setTimeout(done)));
    begun = performance.now();
  }
}

if (typeof module !== "undefined") {
  Object.assign(globalThis, require("./model.js"));
  module.exports = {reader, filler, unpacker, linking, checking, sliced};
}
