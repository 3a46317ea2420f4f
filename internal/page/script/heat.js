"use strict";
// The picture of many ranks, without a document: tested by node. Cells are bytes by kind, row and column, -1 where a process has none; see heat.go.

// heatOf gives the cells. Where there is only one column, that of the peaks, the kinds are the columns instead.
function heatOf(facts, buffer) {
  const read = reader(buffer), rows = facts.names.length, count = facts.columns.length, names = facts.kinds.map((kind) => kind.name);
  const planes = facts.kinds.map(({unit}) => read(2, rows * count, new Float64Array(rows * count)).map((v) => (v ? (v - 1) * unit : -1)));
  if (count > 1) return {rows, kinds: names, columns: facts.columns, crossed: false, cell: (kind, row, column) => planes[kind][row * count + column]};
  return {rows, kinds: [facts.columns[0]], columns: names, crossed: true, cell: (kind, row, column) => planes[column][row]};
}

// medians are those of a kind's columns, of some rows that have a value there; see report.Median.
function medians(heat, kind, rows) {
  return heat.columns.map((_, column) => {
    const list = rows.map((row) => heat.cell(kind, row, column)).filter((value) => value >= 0).sort((a, b) => a - b);
    return list.length ? (list[(list.length - 1) >> 1] + list[list.length >> 1]) / 2 : 0;
  });
}

// deviation is how far a value is from a median: 0 where they are equal, 1 from twice as much on, -1 from half as much on. Small differences count for more than their share, so that they are seen.
function deviation(value, median) {
  if (value === median) return 0;
  if (value <= 0 || median <= 0) return value > median ? 1 : -1;
  const doublings = Math.log2(value / median);
  return Math.sign(doublings) * Math.min(Math.sqrt(Math.abs(doublings)), 1);
}

// orderOf are the rows of the picture, with those of missing ranks (row -1): by rank, or by group and rank.
function orderOf(facts, byGroup) {
  const last = Number.MAX_SAFE_INTEGER, items = facts.names.map((name, row) => ({row, name, rank: facts.ranks[row] < 0 ? last : facts.ranks[row], group: facts.groups[row], mark: facts.marks[row] || ""}));
  for (const rank of facts.missing) items.push({row: -1, name: "rank " + rank, rank, group: last, mark: "missing: no trace of it was read"});
  return items.sort((a, b) => (byGroup ? a.group - b.group : 0) || a.rank - b.rank || a.row - b.row);
}

// place gives each item its top and bottom, in whole pixels. Where there are more items than pixels several share one.
function place(items, height) {
  items.forEach((item, i) => {
    item.top = Math.floor((i * height) / items.length);
    item.bottom = Math.max(Math.floor(((i + 1) * height) / items.length), item.top + 1);
  });
}

// paintOrder lists the items so that what must be seen is painted last: in a column the strongest of those that share a pixel, and above all what is marked, at least two pixels high.
function paintOrder(items, height, strength) {
  const marked = items.filter((item) => item.mark), lines = [];
  for (const item of items) {
    const before = lines[lines.length - 1];
    if (!before || before.top !== item.top) lines.push(item);
    else if (strength(item) > strength(before)) lines[lines.length - 1] = item;
  }
  const high = (item) => ({item, top: Math.min(item.top, height - 2), bottom: Math.max(item.bottom, Math.min(item.top, height - 2) + 2)});
  return [...lines.map((item) => ({item, top: item.top, bottom: item.bottom})), ...marked.map(high)];
}

// spread moves texts beside rows so that they are a gap apart, from the first top on and up to the last. Those that have no room are left out.
function spread(tops, gap, last) {
  const list = tops.slice(0, Math.floor(last / gap) + 1);
  for (let i = 1; i < list.length; i++) list[i] = Math.max(list[i], list[i - 1] + gap);
  for (let i = list.length - 1, most = last; i >= 0; i--, most -= gap) list[i] = Math.min(list[i], most);
  return list;
}

// timesText says how a value is to a median, whose is whose.
function timesText(value, median, whose) {
  if (!median) return "the median of " + whose + " is 0 B";
  const times = fixed(value / median, 2);
  return times === "1.00" ? "as much as the median of " + whose : times + " times the median of " + whose + ", " + sizeText(median);
}

if (typeof module !== "undefined") {
  Object.assign(globalThis, require("./words.js"), require("./unpack.js"));
  module.exports = {heatOf, medians, deviation, orderOf, place, paintOrder, spread, timesText};
}
