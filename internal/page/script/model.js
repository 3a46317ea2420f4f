"use strict";
// What the page knows about blocks, without a document: tested by node (test/model.test.js). unpack.js makes the model.
//
// An event is a block's beginning or end. Blocks have columns: size as an index of sizes in bytes, born and died as events, owner. died is the number of events where a block was never freed.
// Positions are times, or with byEvents the numbers of events, each of which is then as wide as the next one.
//
// Events lie in chunks, whose sums are known: what was live before each, its highest and lowest moment, and how long the blocks lived that ended in it. So a question costs a step for each chunk of the stretch that it is
// about, and one for each event of the chunks at its ends, however many events there are. visited counts these steps.

const chunkShift = 9, chunkEvents = 1 << chunkShift, chunkMask = chunkEvents - 1;

const sizeAt = (model, b) => model.sizes[model.sizeOf[b]];
const timeAt = (model, e) => (model.base[e >> chunkShift] + model.offset[e]) * model.unit;

// eachLive calls visit for every block that is live behind an event. It looks at a checkpoint and the events since, not at the whole run.
function eachLive(model, event, visit) {
  let low = 0, high = model.checkpoints.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.checkpoints[middle].event <= event) low = middle + 1;
    else high = middle;
  }
  if (!low) return;
  const from = model.checkpoints[low - 1];
  for (const b of from.blocks) if (model.died[b] > event) visit(b);
  for (let e = from.event; e <= event; e++) if (model.change[e] > 0 && model.died[model.change[e] - 1] > event) visit(model.change[e] - 1);
  model.visited += from.blocks.length + event - from.event + 1;
}

// eventAt is the last event at or before a position; -1 if there is none.
function eventAt(model, position, byEvents) {
  if (byEvents) return Math.min(Math.floor(position), model.events - 1);
  return eventsUntil(model, (time) => time <= position) - 1;
}

// eventBefore is the last event before a position.
function eventBefore(model, position, byEvents) {
  if (byEvents) return Math.min(Math.ceil(position), model.events) - 1;
  return eventsUntil(model, (time) => time < position) - 1;
}

// eventsUntil counts the events from the first on whose times are early.
function eventsUntil(model, early) {
  let low = 0, high = model.events;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (early(timeAt(model, middle))) low = middle + 1;
    else high = middle;
  }
  return low;
}

// crowded reports whether nine tenths of the events lie in less than a quarter of the time that is shown, so that a picture by time shows little of them.
function crowded(model, span) {
  const early = Math.floor(model.events / 20);
  return model.events > 20 && timeAt(model, model.events - 1 - early) - timeAt(model, early) < span / 4;
}

function step(model, event) {
  const change = model.change[event];
  return change > 0 ? sizeAt(model, change - 1) : -sizeAt(model, -change - 1);
}

// totalAt is what is live behind an event.
function totalAt(model, event) {
  const chunk = (event + 1) >> chunkShift;
  let total = model.start[chunk];
  for (let e = chunk << chunkShift; e <= event; e++) total += step(model, e);
  model.visited += event + 1 - (chunk << chunkShift);
  return total;
}

// climb goes on with a walk up to an event: live is what is live before next; best and at are the most so far, and behind which event.
function climb(model, walk, to) {
  while (walk.next <= to) {
    model.visited++;
    if (!(walk.next & chunkMask) && walk.next + chunkMask <= to) {
      const chunk = walk.next >> chunkShift;
      if (model.high[chunk] > walk.best) {
        walk.best = model.high[chunk];
        walk.at = model.highEvent[chunk];
      }
      walk.live = model.start[chunk + 1];
      walk.next += chunkEvents;
      continue;
    }
    walk.live += step(model, walk.next);
    if (walk.live > walk.best) {
      walk.best = walk.live;
      walk.at = walk.next;
    }
    walk.next++;
  }
}

// highest is the first event behind which most is live, within a range of events; from itself is looked at, too.
function highest(model, from, to) {
  const first = Math.max(from, 0), live = totalAt(model, first), walk = {next: first + 1, live, best: live, at: first};
  climb(model, walk, Math.min(to, model.events - 1));
  return walk.at;
}

// liveAt is how much each owner holds behind an event, and in how many blocks.
function liveAt(model, event) {
  const bytes = new Float64Array(model.owners), count = new Uint32Array(model.owners);
  let total = 0;
  eachLive(model, event, (b) => {
    bytes[model.owner[b]] += sizeAt(model, b);
    count[model.owner[b]]++;
    total += sizeAt(model, b);
  });
  return {bytes, count, total};
}

// liveOf is the part of what is live that a layer holds.
function liveOf(live, layerOf, layer) {
  const bytes = live.bytes.map((held, owner) => (layerOf[owner] === layer ? held : 0)), count = live.count.map((blocks, owner) => (layerOf[owner] === layer ? blocks : 0));
  return {bytes, count, total: bytes.reduce((total, held) => total + held, 0)};
}

const paletteColours = 12;

// coloursOf gives each name its own colour, or the next one that no other name has: see Of of the palette.
function coloursOf(names, own) {
  const taken = new Set(names.filter((name) => Object.hasOwn(own, name)).map((name) => own[name]));
  let next = 0;
  return names.map((name) => {
    if (Object.hasOwn(own, name)) return own[name];
    while (taken.size < paletteColours && taken.has(next % paletteColours)) next++;
    taken.add(next % paletteColours);
    return next++ % paletteColours;
  });
}

// bornSince is liveAt of those blocks that came behind another event: what a stretch of time left behind.
function bornSince(model, edge, event) {
  const bytes = new Float64Array(model.owners), count = new Uint32Array(model.owners);
  let total = 0;
  eachLive(model, event, (b) => {
    if (model.born[b] <= edge) return;
    bytes[model.owner[b]] += sizeAt(model, b);
    count[model.owner[b]]++;
    total += sizeAt(model, b);
  });
  return {bytes, count, total};
}

const shortestPower = 3, powers = 17; // of ten, of nanoseconds: up to what 63 bits hold

// powerOf is the column of lives that a block of so many nanoseconds is counted in.
function powerOf(ns) {
  let power = 0;
  for (let below = 10 ** shortestPower; ns >= below && power < powers - 1; below *= 10) power++;
  return power;
}

// lifetimes counts the blocks that ended behind edge and up to event by powers of ten of nanoseconds that they lived.
function lifetimes(model, edge, event) {
  const count = new Float64Array(powers), bytes = new Float64Array(powers);
  for (let e = Math.max(edge + 1, 0); e <= event; model.visited++) {
    if (!(e & chunkMask) && e + chunkMask <= event) {
      for (let power = 0, at = (e >> chunkShift) * powers; power < powers; power++, at++) {
        count[power] += model.livesCount[at];
        bytes[power] += model.livesBytes[at];
      }
      e += chunkEvents;
      continue;
    }
    const b = -model.change[e] - 1;
    if (b >= 0) {
      const power = powerOf(timeAt(model, e) - timeAt(model, model.born[b]));
      count[power]++;
      bytes[power] += sizeAt(model, b);
    }
    e++;
  }
  const rows = [];
  count.forEach((n, power) => n && rows.push({below: 10 ** (power + shortestPower), count: n, bytes: bytes[power]}));
  return rows;
}

// largest are the largest blocks behind an event, so many of those that keep accepts. Of many, those that cannot be among them any more are put away as it goes.
function largest(model, event, limit, keep) {
  const larger = (a, b) => sizeAt(model, b) - sizeAt(model, a) || a - b;
  let list = [], least = 0;
  eachLive(model, event, (b) => {
    if (sizeAt(model, b) < least || !keep(b)) return;
    if (list.push(b) < 8 * limit + 256) return;
    list = list.sort(larger).slice(0, limit);
    least = list.length && limit ? sizeAt(model, list[list.length - 1]) : 0;
  });
  return list.sort(larger).slice(0, limit);
}

// grouped puts owners of one name together, those with most first. groups gives each owner's group.
function grouped(live, groups, names) {
  const rows = new Map();
  for (let owner = 0; owner < live.bytes.length; owner++) {
    if (!live.count[owner]) continue;
    const name = names[groups[owner]], row = rows.get(name) || {name, bytes: 0, count: 0};
    row.bytes += live.bytes[owner];
    row.count += live.count[owner];
    rows.set(name, row);
  }
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
}

// crossed divides what is live by two groupings at once: rows and columns of names, those with most first.
function crossed(live, rowGroups, rowNames, columnGroups, columnNames) {
  const columns = grouped(live, columnGroups, columnNames).map((row) => row.name), rows = new Map();
  for (let owner = 0; owner < live.bytes.length; owner++) {
    if (!live.count[owner]) continue;
    const name = rowNames[rowGroups[owner]], row = rows.get(name) || {name, bytes: 0, cells: new Array(columns.length).fill(0)};
    row.bytes += live.bytes[owner];
    row.cells[columns.indexOf(columnNames[columnGroups[owner]])] += live.bytes[owner];
    rows.set(name, row);
  }
  return {columns, rows: [...rows.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1))};
}

// layering finds what each layer holds before each chunk, in steps: the page goes on between them.
function* layering(model, layerOf, layers) {
  const chunks = model.high.length, state = new Float64Array(chunks * layers), now = new Float64Array(layers);
  for (let chunk = 0; chunk < chunks; chunk++) {
    state.set(now, chunk * layers);
    const end = Math.min((chunk + 1) << chunkShift, model.events);
    for (let e = chunk << chunkShift; e < end; e++) applyTo(now, model, layerOf, e);
    if (chunk % chunksAtOnce === chunksAtOnce - 1) yield;
  }
  model.layered = {layerOf, layers, state};
}

// applyTo brings what layers hold to behind an event, from before it.
function applyTo(now, model, layerOf, e) {
  const change = model.change[e], block = change > 0 ? change - 1 : -change - 1;
  now[layerOf[model.owner[block]]] += change > 0 ? sizeAt(model, block) : -sizeAt(model, block);
}

const isLayered = (model, layerOf, layers) => model.layered && model.layered.layerOf === layerOf && model.layered.layers === layers;

// columns divides a stretch of positions into so many columns, and each column's highest moment by layer: the picture of a stacked timeline that loses no maximum.
// layerOf gives each owner's layer, from 0 to layers - 1. times are those of the columns' left edges.
function columns(model, from, to, count, layerOf, layers, byEvents) {
  if (!isLayered(model, layerOf, layers)) for (const steps = layering(model, layerOf, layers); !steps.next().done; );
  const event = new Int32Array(count).fill(-1), total = new Float64Array(count), times = new Float64Array(count + 1), width = (to - from) / count;
  const before = eventBefore(model, from, byEvents), walk = {next: before + 1, live: totalAt(model, before), best: 0, at: -1};
  for (let c = 0; c < count; c++) {
    walk.best = walk.live;
    walk.at = walk.next - 1;
    climb(model, walk, Math.min(c + 1 === count ? eventAt(model, to, byEvents) : eventBefore(model, from + (c + 1) * width, byEvents), model.events - 1));
    event[c] = walk.at;
    total[c] = walk.best;
  }
  for (let c = 0; c <= count; c++) times[c] = timeOf(model, from + c * width, byEvents);
  return {event, total, bytes: layersAt(model, event, layerOf, layers), times, layers};
}

// layersAt is what layers hold behind each of some events, which rise.
function layersAt(model, events, layerOf, layers) {
  const bytes = new Float64Array(events.length * layers), state = model.layered.state;
  let now = new Float64Array(layers), done = 0; // now is before the event done
  events.forEach((event, c) => {
    const chunk = event >> chunkShift;
    if (event >= 0 && chunk > (done - 1) >> chunkShift) {
      now = state.slice(chunk * layers, (chunk + 1) * layers);
      done = chunk << chunkShift;
    }
    for (; done <= event; done++, model.visited++) applyTo(now, model, layerOf, done);
    bytes.set(now, c * layers);
  });
  return bytes;
}

function timeOf(model, position, byEvents) {
  return byEvents ? timeAt(model, Math.min(Math.max(Math.floor(position), 0), model.events - 1)) : position;
}

// summits are the events of the local maxima that stand out by a twentieth of the highest. Chunks in which nothing can rise or fall so far are passed over.
function summits(model) {
  const list = [], least = model.high.reduce((a, b) => Math.max(a, b), 0) / 20;
  let live = 0, high = 0, at = -1, low = 0;
  for (let e = 0; e < model.events; e++) {
    const chunk = e >> chunkShift;
    if (!(e & chunkMask) && (at < 0 ? model.high[chunk] < Math.min(low, model.low[chunk]) + least : model.high[chunk] <= high && model.low[chunk] > high - least)) {
      if (at < 0) low = Math.min(low, model.low[chunk]);
      live = model.start[chunk + 1];
      e += chunkMask;
      continue;
    }
    live += step(model, e);
    if (at < 0) {
      low = Math.min(low, live);
      if (live >= low + least) {
        high = live;
        at = e;
      }
    } else if (live > high) {
      high = live;
      at = e;
    } else if (live <= high - least) {
      list.push(at);
      at = -1;
      low = live;
    }
  }
  if (at >= 0) list.push(at);
  return list;
}

const chunksAtOnce = 64, blocksAtOnce = 1 << 15;

// weighing adds up how much blocks of each group hold over the whole run, bytes times nanoseconds, in steps.
function* weighing(model, weight, groupOf, end) {
  for (let b = 0; b < model.blocks; b++) {
    const until = model.died[b] < model.events ? timeAt(model, model.died[b]) : end;
    weight[groupOf[model.owner[b]]] += sizeAt(model, b) * Math.max(until - timeAt(model, model.born[b]), 1);
    if (b % blocksAtOnce === blocksAtOnce - 1) yield;
  }
}

// tree merges the owners' call stacks, outermost frames first. stacks gives each owner's frames, innermost first.
function tree(live, stacks) {
  const root = {frame: -1, bytes: 0, children: new Map()};
  for (let owner = 0; owner < live.bytes.length; owner++) {
    if (!live.bytes[owner]) continue;
    let node = root;
    node.bytes += live.bytes[owner];
    for (let i = stacks[owner].length - 1; i >= 0; i--) {
      const frame = stacks[owner][i];
      let child = node.children.get(frame);
      if (!child) node.children.set(frame, (child = {frame, bytes: 0, children: new Map(), parent: node}));
      child.bytes += live.bytes[owner];
      node = child;
    }
  }
  return root;
}

if (typeof module !== "undefined")
  module.exports = {chunkShift, chunkEvents, powers, chunksAtOnce, sizeAt, timeAt, step, powerOf, totalAt, eachLive, eventAt, crowded, highest, liveAt, liveOf, coloursOf, bornSince, lifetimes, largest, grouped, crossed, layering, isLayered, columns, timeOf, summits, weighing, tree};
