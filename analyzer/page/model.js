"use strict";
// What the page knows about blocks, without a document: tested by node (model.test.js).
//
// An event is a block's beginning or end. Blocks have columns: size in bytes, born and died as events, owner. died is the number of events where a block was never freed.

// unpack reads the columns from one buffer: times and sizes as float64, then born, died and owner as uint32, all little-endian.
function unpack(buffer, events, blocks) {
  let at = 0;
  const take = (type, count) => {
    const column = new type(buffer, at, count);
    at += column.byteLength;
    return column;
  };
  const times = take(Float64Array, events), size = take(Float64Array, blocks);
  const born = take(Uint32Array, blocks), died = take(Uint32Array, blocks), owner = take(Uint32Array, blocks);
  const change = new Int32Array(events); // by event: 1 + the block that begins, or minus that for one that ends
  for (let b = 0; b < blocks; b++) {
    change[born[b]] = b + 1;
    if (died[b] < events) change[died[b]] = -b - 1;
  }
  return {events, blocks, times, size, born, died, owner, change, clock: times};
}

// setClock lets pictures go by time, or by events: then each is as wide as the next one, and the clock's positions are their numbers.
function setClock(model, byEvents) {
  model.clock = byEvents ? Float64Array.from({length: model.events}, (_, event) => event) : model.times;
}

// crowded reports whether nine tenths of the events lie in less than a quarter of the time, so that a picture by time shows little of them.
function crowded(model, end) {
  const early = Math.floor(model.events / 20);
  return model.events > 20 && model.times[model.events - 1 - early] - model.times[early] < end / 4;
}

// eventAt is the last event at or before a position of the clock, or of other increasing positions; -1 if there is none.
function eventAt(model, position, positions = model.clock) {
  let low = 0, high = model.events;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle] <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// highest is the first event behind which most is live, within a range of events; from itself is looked at, too.
function highest(model, from, to) {
  let live = 0, best = -1, at = Math.max(from, 0);
  for (let e = 0; e <= to && e < model.events; e++) {
    live += step(model, e);
    if (e >= from && live > best) {
      best = live;
      at = e;
    }
  }
  return at;
}

function step(model, event) {
  const change = model.change[event];
  return change > 0 ? model.size[change - 1] : -model.size[-change - 1];
}

// liveAt is how much each owner holds behind an event, and in how many blocks.
function liveAt(model, event) {
  const owners = 1 + model.owner.reduce((most, owner) => Math.max(most, owner), 0);
  const bytes = new Float64Array(owners), count = new Uint32Array(owners);
  let total = 0;
  for (let b = 0; b < model.blocks; b++) {
    if (model.born[b] > event) break; // they are in the order of their beginnings
    if (model.died[b] <= event) continue;
    bytes[model.owner[b]] += model.size[b];
    count[model.owner[b]]++;
    total += model.size[b];
  }
  return {bytes, count, total};
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

// columns divides a stretch of the clock into so many columns, and each column's highest moment by layer: the picture of a stacked timeline that loses no maximum.
// layerOf gives each owner's layer, from 0 to layers - 1.
function columns(model, from, to, count, layerOf, layers) {
  const event = new Int32Array(count).fill(-1), total = new Float64Array(count), bytes = new Float64Array(count * layers);
  const width = (to - from) / count;
  let live = 0, e = 0;
  for (let c = 0; c < count; c++) {
    const end = c + 1 === count ? to : from + (c + 1) * width;
    while (e < model.events && model.clock[e] < from + c * width) live += step(model, e++);
    event[c] = e - 1;
    total[c] = live;
    for (; e < model.events && (model.clock[e] < end || (c + 1 === count && model.clock[e] <= end)); e++) {
      live += step(model, e);
      if (live > total[c]) {
        total[c] = live;
        event[c] = e;
      }
    }
  }
  const now = new Float64Array(layers);
  e = 0;
  for (let c = 0; c < count; c++) {
    for (; e <= event[c]; e++) {
      const change = model.change[e], block = change > 0 ? change - 1 : -change - 1;
      now[layerOf[model.owner[block]]] += change > 0 ? model.size[block] : -model.size[block];
    }
    bytes.set(now, c * layers);
  }
  return {event, total, bytes};
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

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// sizeText writes bytes with three digits, as the report does.
function sizeText(bytes) {
  let unit = 0, value = Math.abs(bytes);
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  if (unit === 0) return (bytes < 0 ? "-" : "") + value + " B";
  let text = value.toFixed(value < 10 ? 2 : 1);
  if (Number(text) >= 1024 && unit + 1 < units.length) {
    text = "1.00";
    unit++;
  } else if (text === "10.00") {
    text = "10.0";
  }
  return (bytes < 0 ? "-" : "") + text + " " + units[unit];
}

// timeText writes nanoseconds with three or four digits.
function timeText(ns) {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]])
    if (Math.abs(ns) >= unit) return (ns / unit).toFixed(ns >= 100 * unit ? 1 : ns >= 10 * unit ? 2 : 3) + " " + name;
  return Math.round(ns) + " ns";
}

// ticks are up to about count round values from 0 to high: 1, 2 or 5 times a power of ten, or for bytes a power of two of a unit.
function ticks(low, high, count, binary) {
  const least = (high - low) / count;
  let width;
  if (binary) {
    width = 1;
    while (width < least) width *= 2;
  } else {
    const power = 10 ** Math.floor(Math.log10(least || 1));
    width = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) || 10 * power;
  }
  const list = [];
  for (let v = Math.ceil(low / width) * width; v <= high; v += width) list.push(v);
  return list;
}

if (typeof module !== "undefined") module.exports = {unpack, setClock, crowded, eventAt, highest, liveAt, grouped, columns, summits, tree, sizeText, timeText, ticks};
