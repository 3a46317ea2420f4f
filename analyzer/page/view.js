"use strict";
// The page in the browser: the timeline, the table and the call stacks of the moment that is looked at. Names come from traces and are only ever set as text.

const colours = 8, layersShown = colours - 1;
const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

// state is what the fragment of the address says: the key that divides, the event that is looked at, the stretch of the clock that is shown, and what the clock goes by.
const state = {by: 0, event: 0, byEvents: false, from: 0, to: 0, edge: null, all: false, zoomed: null};
let facts, model, layers, drawn;

const origin = () => (state.byEvents ? facts.older : facts.begin);
const end = () => (state.byEvents ? model.events : facts.end);
const position = (time) => (state.byEvents ? Math.max(eventAt(model, time, model.times), 0) : time);
const timeAt = (position) => (state.byEvents ? model.times[Math.min(Math.max(Math.floor(position), 0), model.events - 1)] : position);

function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  const by = facts.by.indexOf(given.get("by"));
  state.by = by < 0 ? facts.first : by;
  const number = (name, otherwise) => (given.has(name) && isFinite(Number(given.get(name))) ? Number(given.get(name)) : otherwise);
  state.byEvents = given.has("axis") ? given.get("axis") === "events" : crowded(model, facts.end);
  setClock(model, state.byEvents);
  state.from = Math.max(origin(), number("from", origin()));
  state.to = Math.min(end(), number("to", end()));
  if (state.to <= state.from) [state.from, state.to] = [origin(), end()];
  const at = number("at", -1);
  state.event = at < 0 ? facts.peak : Math.max(0, eventAt(model, at, model.times));
  state.edge = state.from > origin() ? eventAt(model, state.from) : null;
}

function writeFragment() {
  const said = new URLSearchParams();
  if (state.by !== facts.first) said.set("by", facts.by[state.by]);
  if (state.event !== facts.peak) said.set("at", String(model.times[state.event]));
  if (state.byEvents !== crowded(model, facts.end)) said.set("axis", state.byEvents ? "events" : "time");
  if (state.from > origin()) said.set("from", String(Math.round(state.from)));
  if (state.to < end()) said.set("to", String(Math.round(state.to)));
  const text = said.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

// divide finds the layers of the picture: the groups that hold most at the peak and at the end of it, and the rest.
function divide() {
  const names = facts.keys[state.by], groupOf = facts.owners.map((owner) => owner.k[state.by]);
  const weight = new Float64Array(names.length);
  for (let b = 0; b < model.blocks; b++) {
    const until = model.died[b] < model.events ? model.times[model.died[b]] : facts.end;
    weight[groupOf[model.owner[b]]] += model.size[b] * Math.max(until - model.times[model.born[b]], 1);
  }
  const live = liveAt(model, facts.peak), atPeak = new Float64Array(names.length);
  live.bytes.forEach((bytes, owner) => (atPeak[groupOf[owner]] += bytes));
  const span = Math.max(facts.end - facts.begin, 1);
  const order = names.map((_, group) => group).sort((a, b) => atPeak[b] + weight[b] / span - atPeak[a] - weight[a] / span).filter((group) => weight[group] > 0);
  const shown = order.slice(0, order.length > colours ? layersShown : colours);
  const layerOf = groupOf.map((group) => (shown.indexOf(group) < 0 ? shown.length : shown.indexOf(group)));
  layers = {names: shown.map((group) => names[group]), count: shown.length + (shown.length < order.length ? 1 : 0), others: order.length - shown.length, layerOf, groupOf};
}

const colour = (layer) => style(layer < layers.names.length ? "--c" + layer : "--rest");
const layerName = (layer) => (layer < layers.names.length ? layers.names[layer] : layers.others + " more");

const margin = {left: 74, right: 14, top: 26, bottom: 26, lane: 15};

function draw() {
  const canvas = element("picture"), scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  const lanes = facts.lanes.filter((lane) => lane.items.length);
  const plot = {x: margin.left, y: margin.top, w: width - margin.left - margin.right, h: height - margin.top - margin.bottom - lanes.length * margin.lane};
  const count = Math.max(1, Math.floor(plot.w));
  const picture = columns(model, state.from, state.to, count, layers.layerOf, layers.count);
  const line = facts.levels.map((level) => ({...level, values: highs(level, count)}));
  let most = picture.total.reduce((a, b) => Math.max(a, b), 1);
  for (const level of line) most = level.values.reduce((a, b) => Math.max(a, b), most);
  const across = (position) => plot.x + ((position - state.from) / (state.to - state.from)) * plot.w, x = (time) => across(position(time));
  const y = (bytes) => plot.y + plot.h - (bytes / most) * plot.h;
  axes(g, plot, most, across, y);
  for (let layer = 0; layer < layers.count; layer++) {
    g.fillStyle = colour(layer);
    g.beginPath();
    for (let c = 0; c < count; c++) {
      let below = 0;
      for (let under = 0; under < layer; under++) below += picture.bytes[c * layers.count + under];
      const bytes = picture.bytes[c * layers.count + layer];
      if (bytes > 0) g.rect(plot.x + c, y(below + bytes), 1.2, y(below) - y(below + bytes));
    }
    g.fill();
  }
  for (const level of line) outline(g, plot, level, y);
  drawLanes(g, plot, lanes, x);
  cursor(g, plot, across(model.clock[state.event]));
  drawn = {plot, picture, count};
}

// highs are a level's highest bytes in each column.
function highs(level, count) {
  const values = new Float64Array(count), width = (state.to - state.from) / count;
  for (let c = 0; c < count; c++) {
    const first = Math.floor((timeAt(state.from + c * width) - level.from) / level.width), last = Math.floor((timeAt(state.from + (c + 1) * width) - level.from) / level.width);
    for (let i = first; i <= Math.max(first, last - 1) && i < level.bytes.length; i++) values[c] = Math.max(values[c], level.bytes[i]);
  }
  return values;
}

function axes(g, plot, most, across, y) {
  g.font = "12px system-ui, sans-serif";
  g.strokeStyle = style("--line");
  g.fillStyle = style("--soft");
  g.lineWidth = 1;
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (const bytes of ticks(0, most, 5, true)) {
    g.beginPath();
    g.moveTo(plot.x, Math.round(y(bytes)) + 0.5);
    g.lineTo(plot.x + plot.w, Math.round(y(bytes)) + 0.5);
    g.stroke();
    g.fillText(sizeText(bytes).replace(/\.0+ /, " "), plot.x - 8, y(bytes));
  }
  g.textAlign = "center";
  g.textBaseline = "top";
  for (const at of ticks(state.from, state.to, Math.max(2, plot.w / 110), false)) {
    if (across(at) < plot.x + 12 || across(at) > plot.x + plot.w - 26) continue;
    g.fillText(axisTime(timeAt(at)), across(at), plot.y + plot.h + 6);
  }
}

function axisTime(ns) {
  if (state.byEvents) return timeText(ns);
  const span = state.to - state.from;
  const [unit, name] = span >= 2e9 ? [1e9, "s"] : span >= 2e6 ? [1e6, "ms"] : [1e3, "us"];
  return Number((ns / unit).toPrecision(6)) + " " + name;
}

function outline(g, plot, level, y) {
  g.strokeStyle = style("--mark");
  g.setLineDash(level.dash);
  g.lineWidth = 1.2;
  g.beginPath();
  level.values.forEach((bytes, c) => (c ? g.lineTo(plot.x + c, y(bytes)) : g.moveTo(plot.x + c, y(bytes))));
  g.stroke();
  g.setLineDash([]);
}

function drawLanes(g, plot, lanes, x) {
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  lanes.forEach((lane, n) => {
    const top = plot.y + plot.h + margin.bottom + n * margin.lane;
    g.fillStyle = style("--soft");
    g.textAlign = "right";
    g.fillText(lane.name, plot.x - 8, top + margin.lane / 2 - 1);
    g.save();
    g.beginPath();
    g.rect(plot.x, top, plot.w, margin.lane);
    g.clip();
    lane.items.forEach((item, i) => {
      const left = x(item.from), right = item.to === undefined ? left + 2 : x(item.to);
      g.fillStyle = lane.alarm ? style("--alarm") : i % 2 ? style("--line") : style("--rest");
      g.fillRect(left, top + 1, Math.max(right - left - 0.5, 1.5), margin.lane - 4);
      g.fillStyle = style("--text");
      g.textAlign = "left";
      if (item.to === undefined ? lane.items.length < 12 : right - left > g.measureText(item.name).width + 6) g.fillText(item.name, left + 4, top + margin.lane / 2 - 1);
    });
    g.restore();
  });
}

function cursor(g, plot, at) {
  const time = model.times[state.event];
  if (at >= plot.x && at <= plot.x + plot.w) {
    g.strokeStyle = style("--mark");
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(at, plot.y - 4);
    g.lineTo(at, plot.y + plot.h);
    g.stroke();
    const live = liveAt(model, state.event).total;
    const words = (state.event === facts.peak ? "peak " : "") + sizeText(live) + " at " + timeText(time);
    g.font = "600 12.5px system-ui, sans-serif";
    g.fillStyle = style("--text");
    g.textBaseline = "alphabetic";
    const room = g.measureText(words).width;
    g.textAlign = "left";
    g.fillText(words, Math.min(Math.max(at - room / 2, plot.x), plot.x + plot.w - room), plot.y - 9);
  }
  if (dragging && dragging.to !== dragging.from) {
    g.fillStyle = style("--accent");
    g.globalAlpha = 0.2;
    g.fillRect(Math.min(dragging.from, dragging.to), plot.y, Math.abs(dragging.to - dragging.from), plot.h);
    g.globalAlpha = 1;
  }
}

function legend() {
  const list = element("legend");
  list.replaceChildren();
  const svg = (fill, dash) => {
    const box = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    box.setAttribute("class", "swatch");
    box.setAttribute("viewBox", "0 0 11 11");
    const shape = document.createElementNS("http://www.w3.org/2000/svg", dash ? "path" : "rect");
    if (dash) {
      shape.setAttribute("d", "M0 5.5H11");
      shape.setAttribute("stroke", fill);
      shape.setAttribute("stroke-dasharray", dash.join(" "));
    } else {
      shape.setAttribute("width", "11");
      shape.setAttribute("height", "11");
      shape.setAttribute("fill", fill);
    }
    box.append(shape);
    return box;
  };
  for (let layer = 0; layer < layers.count; layer++) {
    const item = make("li");
    item.append(svg(colour(layer)), make("span", layerName(layer)));
    list.append(item);
  }
  for (const level of facts.levels) {
    const item = make("li");
    item.append(svg(style("--mark"), level.dash.length ? level.dash : [11]), make("span", level.name));
    list.append(item);
  }
}

function shape(bytes, most, fill) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  rect.setAttribute("width", String(Math.max((100 * bytes) / most, 0.4)));
  rect.setAttribute("height", "10");
  rect.setAttribute("fill", fill);
  svg.append(rect);
  return svg;
}

const rowsShown = 12, blocksShown = 12;

function table() {
  const live = liveAt(model, state.event), rows = grouped(live, layers.groupOf, facts.keys[state.by]);
  const before = state.edge === null ? null : new Map(grouped(liveAt(model, state.edge), layers.groupOf, facts.keys[state.by]).map((row) => [row.name, row.bytes]));
  const wanted = element("find").value.toLowerCase();
  const found = rows.filter((row) => row.name.toLowerCase().includes(wanted));
  const body = element("owners"), most = rows.length ? rows[0].bytes : 1;
  body.replaceChildren();
  const line = (name, bytes, change, count, fill) => {
    const row = make("tr");
    row.append(make("td", name, "name"), make("td", sizeText(bytes), "n"), make("td", live.total ? ((100 * bytes) / live.total).toFixed(1) + "%" : "", "n"),
      make("td", change === null ? "" : (change > 0 ? "+" : "") + sizeText(change), "n"), make("td", count.toLocaleString("en"), "n"));
    const cell = make("td", undefined, "shape");
    if (fill) cell.append(shape(bytes, most, fill));
    row.append(cell);
    body.append(row);
    return row;
  };
  for (const row of state.all ? found : found.slice(0, rowsShown)) {
    const layer = layers.names.indexOf(row.name);
    line(row.name, row.bytes, before && row.bytes - (before.get(row.name) || 0), row.count, style(layer < 0 ? "--rest" : "--c" + layer));
  }
  const sum = line("total", live.total, before && live.total - [...before.values()].reduce((a, b) => a + b, 0), rows.reduce((a, row) => a + row.count, 0), "");
  sum.className = "total";
  element("whose").textContent = facts.by[state.by];
  element("change").textContent = before ? "since " + timeText(model.times[Math.max(state.edge, 0)]) : "";
  element("more").hidden = found.length <= rowsShown;
  element("more").textContent = state.all ? "Show fewer rows" : "Show all " + found.length.toLocaleString("en") + " rows";
  const time = timeText(model.times[state.event]);
  element("when").textContent = state.event === facts.peak ? "At the peak, " + time : "At " + time;
  element("whenmore").textContent = sizeText(live.total) + " in " + rows.reduce((a, row) => a + row.count, 0).toLocaleString("en") + " blocks" + where();
  blocks();
  stacks(live);
}

// where names the iteration that the moment lies in.
function where() {
  const time = model.times[state.event];
  for (const lane of facts.lanes)
    for (const item of lane.items) if (item.to !== undefined && item.from <= time && time < item.to) return ", " + item.title;
  return "";
}

function blocks() {
  const list = [];
  for (let b = 0; b < model.blocks && model.born[b] <= state.event; b++) if (model.died[b] > state.event) list.push(b);
  list.sort((a, b) => model.size[b] - model.size[a] || a - b);
  const body = element("blocks"), wanted = element("find").value.toLowerCase(), place = Math.max(facts.by.indexOf("inner"), 0);
  body.replaceChildren();
  for (const b of list.filter((b) => blockName(b, place).toLowerCase().includes(wanted)).slice(0, blocksShown)) {
    const row = make("tr"), end = model.died[b] < model.events ? timeText(model.times[model.died[b]]) : "the end";
    row.append(make("td", sizeText(model.size[b]), "n"), make("td", timeText(model.times[model.born[b]]), "n"), make("td", end, "n"), make("td", blockName(b, place), "name"));
    body.append(row);
  }
}

function blockName(b, place) {
  const owner = facts.owners[model.owner[b]], module = facts.by.indexOf("module");
  const name = facts.keys[place][owner.k[place]];
  return module < 0 || !/^[A-Za-z_]/.test(facts.keys[module][owner.k[module]]) ? name : name + "  ·  " + facts.keys[module][owner.k[module]];
}

const stackRow = 20, stackRows = 34;

function stacks(live) {
  const area = element("stacks"), root = tree(live, facts.owners.map((owner) => owner.f)), width = area.clientWidth, wanted = element("find").value.toLowerCase();
  area.replaceChildren();
  let top = root;
  for (const frame of state.zoomed || []) if (top.children.has(frame)) top = top.children.get(frame);
  const path = [];
  for (let node = top; node !== root; node = node.parent) path.unshift(node.frame);
  let deepest = 0;
  const box = (left, share, row, text, node, own) => {
    if (share * width < 2.5 || row >= stackRows) return false;
    deepest = Math.max(deepest, row);
    const made = make("button", share * width > 24 ? text : "", own ? "own" : "");
    made.type = "button";
    made.title = text + "\n" + sizeText(node.bytes) + ", " + ((100 * node.bytes) / live.total).toFixed(1) + "%";
    made.setAttribute("aria-label", made.title);
    made.style.left = left * 100 + "%";
    made.style.width = share * 100 + "%";
    made.style.top = row * stackRow + "px";
    if (wanted && text.toLowerCase().includes(wanted)) made.classList.add("found");
    made.addEventListener("click", () => {
      const to = [];
      for (let n = node; n !== root; n = n.parent) to.unshift(n.frame);
      state.zoomed = node === top ? to.slice(0, -1) : to;
      stacks(live);
    });
    area.append(made);
    return true;
  };
  const name = (frame) => facts.frames[frame].t;
  box(0, 1, 0, path.length ? "◂ all " + sizeText(live.total) : "all " + sizeText(live.total), root, false);
  let row = 1;
  for (const frame of path.slice(0, -1).slice(-2)) {
    let node = top;
    while (node.frame !== frame) node = node.parent;
    box(0, 1, row++, name(frame), node, facts.frames[frame].u);
  }
  const walk = (node, left, share, row) => {
    if (node !== root && !box(left, share, row, name(node.frame), node, facts.frames[node.frame].u)) return;
    for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
      const part = (share * child.bytes) / node.bytes;
      walk(child, left, part, node === root ? row : row + 1);
      left += part;
    }
  };
  walk(top, 0, 1, row);
  area.style.height = (deepest + 1) * stackRow + "px";
}

function redraw() {
  draw();
  table();
  writeFragment();
}

function look(event) {
  state.event = Math.min(Math.max(event, 0), model.events - 1);
  redraw();
}

function zoom(from, to) {
  state.from = Math.max(origin(), from);
  state.to = Math.min(end(), to);
  state.edge = state.from > origin() ? Math.max(eventAt(model, state.from), 0) : null;
  look(highest(model, eventAt(model, state.from), eventAt(model, state.to)));
}

function neighbour(direction) {
  const list = summits(model);
  const next = direction < 0 ? list.filter((event) => event < state.event).pop() : list.find((event) => event > state.event);
  if (next === undefined) return;
  const at = model.clock[next];
  if (at < state.from || at > state.to) [state.from, state.to, state.edge] = [origin(), end(), null];
  look(next);
}

function columnAt(pointer) {
  const left = element("picture").getBoundingClientRect().left;
  return Math.min(Math.max(Math.floor(pointer.clientX - left - drawn.plot.x), 0), drawn.count - 1);
}

let dragging = null;

function listen() {
  const canvas = element("picture");
  canvas.addEventListener("pointermove", (pointer) => {
    const c = columnAt(pointer), from = state.from + (c / drawn.count) * (state.to - state.from);
    const parts = [];
    for (let layer = 0; layer < layers.count; layer++) parts.push([drawn.picture.bytes[c * layers.count + layer], layerName(layer)]);
    parts.sort((a, b) => b[0] - a[0]);
    element("reading").textContent = timeText(timeAt(from)) + ": " + sizeText(drawn.picture.total[c]) + " live. " + parts.filter((part) => part[0] > 0).slice(0, 3).map((part) => sizeText(part[0]) + " " + part[1]).join("; ");
    if (dragging) {
      dragging.to = drawn.plot.x + c;
      draw();
    }
  });
  canvas.addEventListener("pointerdown", (pointer) => {
    const at = drawn.plot.x + columnAt(pointer);
    dragging = {from: at, to: at};
    canvas.setPointerCapture(pointer.pointerId);
  });
  canvas.addEventListener("pointerup", (pointer) => {
    const c = columnAt(pointer), begun = dragging && dragging.from - drawn.plot.x;
    dragging = null;
    const time = (column) => state.from + (column / drawn.count) * (state.to - state.from);
    if (begun !== null && Math.abs(c - begun) > 4) zoom(time(Math.min(c, begun)), time(Math.max(c, begun) + 1));
    else look(Math.max(drawn.picture.event[c], 0));
  });
  canvas.addEventListener("pointercancel", () => (dragging = null));
  canvas.addEventListener("keydown", (key) => {
    const moves = {ArrowLeft: () => look(state.event - (key.shiftKey ? 100 : 1)), ArrowRight: () => look(state.event + (key.shiftKey ? 100 : 1)), Home: () => look(facts.peak), End: () => look(model.events - 1),
      PageUp: () => neighbour(-1), PageDown: () => neighbour(1), Escape: whole};
    if (!moves[key.key]) return;
    key.preventDefault();
    moves[key.key]();
  });
  const whole = () => {
    [state.from, state.to, state.edge] = [origin(), end(), null];
    redraw();
  };
  element("axis").addEventListener("change", () => {
    state.byEvents = element("axis").value === "events";
    setClock(model, state.byEvents);
    whole();
  });
  element("peak").addEventListener("click", () => look(facts.peak));
  element("before").addEventListener("click", () => neighbour(-1));
  element("behind").addEventListener("click", () => neighbour(1));
  element("all").addEventListener("click", whole);
  element("more").addEventListener("click", () => {
    state.all = !state.all;
    table();
  });
  element("find").addEventListener("input", table);
  element("by").addEventListener("change", () => {
    state.by = element("by").selectedIndex;
    divide();
    legend();
    redraw();
  });
  element("copy").addEventListener("click", async (click) => {
    const command = facts.command + " --at " + (model.times[state.event] / 1e9).toFixed(9) + "s --by " + facts.by[state.by] + " " + facts.path;
    try {
      await navigator.clipboard.writeText(command);
      click.target.textContent = "Copied";
    } catch {
      window.prompt("The command:", command);
    }
    setTimeout(() => (element("copy").textContent = "Copy as command"), 1500);
  });
  element("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    legend();
    draw();
    table();
  });
  document.addEventListener("keydown", (key) => {
    if (key.key !== "/" || document.activeElement === element("find")) return;
    key.preventDefault();
    element("find").focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (legend(), draw(), table()));
  new ResizeObserver(() => (draw(), table())).observe(element("timeline"));
}

async function begin() {
  facts = JSON.parse(element("facts").textContent);
  if (!facts.events) return;
  model = unpack(await inflate(facts.columns), facts.events, facts.blocks);
  for (const name of facts.by) element("by").append(make("option", name));
  readFragment();
  element("by").selectedIndex = state.by;
  element("axis").value = state.byEvents ? "events" : "time";
  document.documentElement.classList.add("scripted");
  divide();
  legend();
  listen();
  redraw();
  document.documentElement.dataset.ready = "yes";
}

begin();
