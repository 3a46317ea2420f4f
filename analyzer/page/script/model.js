"use strict";
// What the page knows about blocks, without a document: tested by node (test/model.test.js).
//
// An event is a block's beginning or end. Blocks have columns: size in bytes, born and died as events, owner. died is the number of events where a block was never freed.
// Positions are times, or with byEvents the numbers of events, each of which is then as wide as the next one.

// reader takes columns of planes from a buffer: see columns.go.
function reader(buffer) {
  const bytes = new Uint8Array(buffer);
  let at = 0;
  return (planes, count, column) => {
    for (let plane = 0, weight = 1; plane < planes; plane++, weight *= 256, at += count)
      for (let row = 0; row < count; row++) if (bytes[at + row]) column[row] += bytes[at + row] * weight;
    return column;
  };
}

// unpack reads how long blocks live, their sizes and owners, and the times of events.
function unpack(buffer, {events, blocks, sizes, unit}) {
  const take = reader(buffer);
  const life = take(4, blocks, new Uint32Array(blocks)), sizeOf = take(4, blocks, new Uint32Array(blocks)), owner = take(4, blocks, new Uint32Array(blocks));
  const times = take(8, events, new Float64Array(events));
  for (let e = 0, time = 0; e < events; e++) times[e] = (time += times[e]) * unit;
  const size = Float64Array.from(sizeOf, (n) => sizes[n]), born = new Uint32Array(blocks), died = new Uint32Array(blocks).fill(events);
  const change = new Int32Array(events); // by event: 1 + the block that begins, or minus that for one that ends
  for (let e = 0, b = 0; e < events; e++) { // an event at which nothing ends is the next block's beginning
    if (change[e]) continue;
    born[b] = e;
    change[e] = b + 1;
    if (life[b]) {
      died[b] = e + life[b];
      change[died[b]] = -b - 1;
    }
    b++;
  }
  let owners = 0;
  for (let b = 0; b < blocks; b++) owners = Math.max(owners, owner[b] + 1);
  const model = {events, blocks, owners, times, size, born, died, owner, change, visited: 0};
  model.checkpoints = checkpoints(model, checkpointEvents);
  return model;
}

const checkpointEvents = 1 << 16;

// checkpoints are the blocks that are live before some of the events. They stand as far apart as the list before is long, so that all of them together are not longer than the events.
function checkpoints(model, apart) {
  const list = [], live = [], placeOf = new Uint32Array(model.blocks);
  for (let e = 0, next = 0; e < model.events; e++) {
    if (e === next) {
      list.push({event: e, blocks: Uint32Array.from(live)});
      next = e + Math.max(apart, live.length);
    }
    const change = model.change[e];
    if (change > 0) {
      placeOf[change - 1] = live.length;
      live.push(change - 1);
      continue;
    }
    const place = placeOf[-change - 1], last = live.pop();
    if (place < live.length) {
      live[place] = last;
      placeOf[last] = place;
    }
  }
  return list;
}

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
    if (early(model.times[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

// crowded reports whether nine tenths of the events lie in less than a quarter of the time, so that a picture by time shows little of them.
function crowded(model, end) {
  const early = Math.floor(model.events / 20);
  return model.events > 20 && model.times[model.events - 1 - early] - model.times[early] < end / 4;
}

function step(model, event) {
  const change = model.change[event];
  return change > 0 ? model.size[change - 1] : -model.size[-change - 1];
}

function totalAt(model, event) {
  let total = 0;
  eachLive(model, event, (b) => (total += model.size[b]));
  return total;
}

// highest is the first event behind which most is live, within a range of events; from itself is looked at, too.
function highest(model, from, to) {
  const first = Math.max(from, 0);
  let live = totalAt(model, first), best = live, at = first;
  for (let e = first + 1; e <= to && e < model.events; e++) {
    live += step(model, e);
    if (live > best) {
      best = live;
      at = e;
    }
  }
  model.visited += Math.max(to - first, 0);
  return at;
}

// liveAt is how much each owner holds behind an event, and in how many blocks.
function liveAt(model, event) {
  const bytes = new Float64Array(model.owners), count = new Uint32Array(model.owners);
  let total = 0;
  eachLive(model, event, (b) => {
    bytes[model.owner[b]] += model.size[b];
    count[model.owner[b]]++;
    total += model.size[b];
  });
  return {bytes, count, total};
}

// bornSince is liveAt of those blocks that came behind another event: what a stretch of time left behind.
function bornSince(model, edge, event) {
  const bytes = new Float64Array(model.owners), count = new Uint32Array(model.owners);
  let total = 0;
  eachLive(model, event, (b) => {
    if (model.born[b] <= edge) return;
    bytes[model.owner[b]] += model.size[b];
    count[model.owner[b]]++;
    total += model.size[b];
  });
  return {bytes, count, total};
}

// lifetimes counts the blocks that ended behind edge and up to event by powers of ten of nanoseconds that they lived. It goes on from the last answer: moments that are looked at one after the other lie close together.
function lifetimes(model, edge, event) {
  let last = model.lives;
  if (!last || last.edge !== edge) last = model.lives = {edge, event: Math.max(edge, -1), rows: new Map()};
  const count = (e, sign) => {
    const b = -model.change[e] - 1;
    if (b < 0) return;
    const below = 10 ** Math.max(3, Math.floor(Math.log10(Math.max(model.times[e] - model.times[model.born[b]], 1))) + 1);
    const row = last.rows.get(below) || {below, count: 0, bytes: 0};
    row.count += sign;
    row.bytes += sign * model.size[b];
    last.rows.set(below, row);
  };
  model.visited += Math.abs(event - last.event);
  for (; last.event < event; last.event++) count(last.event + 1, 1);
  for (; last.event > event && last.event > edge; last.event--) count(last.event, -1);
  return [...last.rows.values()].filter((row) => row.count).map((row) => ({...row})).sort((a, b) => a.below - b.below);
}

// largest are the largest blocks behind an event, so many of those that keep accepts.
function largest(model, event, limit, keep) {
  const list = [];
  eachLive(model, event, (b) => keep(b) && list.push(b));
  return list.sort((a, b) => model.size[b] - model.size[a] || a - b).slice(0, limit);
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

// columns divides a stretch of positions into so many columns, and each column's highest moment by layer: the picture of a stacked timeline that loses no maximum.
// layerOf gives each owner's layer, from 0 to layers - 1. times are those of the columns' left edges.
function columns(model, from, to, count, layerOf, layers, byEvents) {
  const event = new Int32Array(count).fill(-1), total = new Float64Array(count), bytes = new Float64Array(count * layers), times = new Float64Array(count + 1);
  const width = (to - from) / count, position = byEvents ? (e) => e : (e) => model.times[e];
  const before = eventBefore(model, from, byEvents), now = new Float64Array(layers);
  eachLive(model, before, (b) => (now[layerOf[model.owner[b]]] += model.size[b]));
  let live = now.reduce((sum, bytes) => sum + bytes, 0), e = before + 1;
  for (let c = 0; c < count; c++) {
    const end = c + 1 === count ? to : from + (c + 1) * width;
    event[c] = e - 1;
    total[c] = live;
    for (; e < model.events && (position(e) < end || (c + 1 === count && position(e) <= end)); e++) {
      live += step(model, e);
      if (live > total[c]) {
        total[c] = live;
        event[c] = e;
      }
    }
  }
  model.visited += 2 * (e - before);
  e = before + 1;
  for (let c = 0; c < count; c++) {
    for (; e <= event[c]; e++) {
      const change = model.change[e], block = change > 0 ? change - 1 : -change - 1;
      now[layerOf[model.owner[block]]] += change > 0 ? model.size[block] : -model.size[block];
    }
    bytes.set(now, c * layers);
  }
  for (let c = 0; c <= count; c++) times[c] = timeOf(model, from + c * width, byEvents);
  return {event, total, bytes, times, layers};
}

function timeOf(model, position, byEvents) {
  return byEvents ? model.times[Math.min(Math.max(Math.floor(position), 0), model.events - 1)] : position;
}

// summits are the events of the local maxima that stand out by a twentieth of the highest.
function summits(model) {
  const list = [];
  let live = 0, most = 0;
  for (let e = 0; e < model.events; e++) {
    live += step(model, e);
    most = Math.max(most, live);
  }
  const least = most / 20;
  let high = 0, at = -1, low = 0;
  live = 0;
  for (let e = 0; e < model.events; e++) {
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

// weights are how much blocks of each group hold over the whole run: bytes times nanoseconds.
function weights(model, groupOf, groups, end) {
  const weight = new Float64Array(groups);
  for (let b = 0; b < model.blocks; b++) {
    const until = model.died[b] < model.events ? model.times[model.died[b]] : end;
    weight[groupOf[model.owner[b]]] += model.size[b] * Math.max(until - model.times[model.born[b]], 1);
  }
  return weight;
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
  module.exports = {reader, unpack, checkpoints, eachLive, eventAt, crowded, highest, liveAt, bornSince, lifetimes, largest, grouped, crossed, columns, timeOf, summits, weights, tree};
