"use strict";
// The timeline: layers stacked by a grouping, lines above them, lanes below, and the cursor.

const margin = {left: 74, right: 14, top: 26, bottom: 26, lane: 15};

const colour = (layer) => style(layer < layers.names.length ? "--c" + layers.colours[layer] : "--rest");
const layerName = (layer) => (layer < layers.names.length ? layers.names[layer] : layers.others + " more");

// plotOf is where the picture lies on its canvas.
function plotOf(width, height) {
  const lanes = facts.lanes.filter((lane) => lane.items.length);
  return {x: margin.left, y: margin.top, w: width - margin.left - margin.right, h: height - margin.top - margin.bottom - lanes.length * margin.lane};
}

// draw paints the picture that the source gave last.
function draw() {
  if (!shown) return;
  const {g, width, height} = sized(element("picture")), plot = plotOf(width, height), picture = shown.picture, count = shown.count;
  const lines = facts.levels.map((level) => ({...level, values: highs(level, picture, count)}));
  let most = picture.total.reduce((a, b) => Math.max(a, b), 1);
  for (const level of lines) most = level.values.reduce((a, b) => Math.max(a, b), most);
  const across = (position) => plot.x + ((position - shown.from) / (shown.to - shown.from)) * plot.w;
  const y = (bytes) => plot.y + plot.h - (bytes / most) * plot.h;
  axes(g, plot, most, across, y);
  shown.most = most;
  for (let layer = 0; layer < layers.count; layer++) {
    g.fillStyle = colour(layer);
    g.beginPath();
    for (let c = 0; c < count; c++) {
      let below = 0;
      for (let under = 0; under < layer; under++) below += picture.bytes[c * picture.layers + under];
      const bytes = picture.bytes[c * picture.layers + layer];
      if (bytes > 0) g.rect(plot.x + (c * plot.w) / count, y(below + bytes), plot.w / count + 0.2, y(below) - y(below + bytes));
    }
    g.fill();
  }
  for (const level of lines) outline(g, plot, level, y, count);
  const x = (time) => (shown.byEvents ? plot.x + (columnOf(picture.times, time) * plot.w) / count : across(time));
  if (facts.growth) slope(g, plot, facts.growth, x, y);
  drawLanes(g, plot, x);
  selected(g, plot, x, y);
  cursor(g, plot, across(shown.cursor));
}

// columnOf is the column that a time lies in, -1 before the first and their number behind the last.
function columnOf(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// highs are a level's highest bytes in each column, none before the level begins.
function highs(level, picture, count) {
  const values = new Float64Array(count);
  for (let c = 0; c < count; c++) {
    const first = Math.floor((picture.times[c] - level.from) / level.width), last = Math.floor((picture.times[c + 1] - level.from) / level.width);
    for (let i = Math.max(first, 0); i <= Math.max(first, last - 1) && i < level.bytes.length; i++) values[c] = Math.max(values[c], level.bytes[i]);
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
  for (const at of ticks(shown.from, shown.to, Math.max(2, plot.w / 110), false)) {
    const x = across(at);
    if (x < plot.x + 12 || x > plot.x + plot.w - 26) continue;
    g.fillText(shown.byEvents ? timeText(shown.picture.times[Math.round(((x - plot.x) / plot.w) * shown.count)]) : axisTime(at), x, plot.y + plot.h + 6);
  }
}

function axisTime(ns) {
  const [unit, name] = shown.to >= 1e9 ? [1e9, "s"] : shown.to >= 2e6 ? [1e6, "ms"] : [1e3, "us"], digits = Math.max(2 - Math.floor(Math.log10((shown.to - shown.from) / unit)), 0);
  return Number((ns / unit).toFixed(Math.min(digits, 9))) + " " + name;
}

function outline(g, plot, level, y, count) {
  g.strokeStyle = style("--mark");
  g.setLineDash(level.dash);
  g.lineWidth = 1.2;
  g.beginPath();
  level.values.forEach((bytes, c) => g[c ? "lineTo" : "moveTo"](plot.x + (c * plot.w) / count, y(bytes)));
  g.stroke();
  g.setLineDash([]);
}

// slope draws the line through what stays, which grows.
function slope(g, plot, growth, x, y) {
  const from = x(growth.from), to = x(growth.to);
  if (to <= from) return;
  g.save();
  g.beginPath();
  g.rect(plot.x, plot.y, plot.w, plot.h);
  g.clip();
  g.strokeStyle = g.fillStyle = style("--alarm");
  g.lineWidth = 2;
  g.setLineDash([7, 4]);
  g.beginPath();
  g.moveTo(from, y(growth.from_bytes));
  g.lineTo(to, y(growth.to_bytes));
  g.stroke();
  g.setLineDash([]);
  g.restore();
}

// bandAt is the layer under a place of the picture, and how many bytes of it lie below that.
function bandAt(column, px) {
  const box = element("picture").getBoundingClientRect(), plot = plotOf(box.width, box.height), {picture} = shown;
  let above = ((plot.y + plot.h - (px - box.top)) / plot.h) * shown.most;
  for (let layer = 0; layer < layers.count; layer++) {
    const bytes = picture.bytes[column * picture.layers + layer];
    if (above >= 0 && above < bytes) return {layer, height: above};
    above -= bytes;
  }
  return null;
}

// pickedBlock is the block at the place of a band that was clicked at: the largest lie lowest.
function pickedBlock() {
  if (state.pick === null || state.height === null) return null;
  let below = 0;
  for (const block of shown.list) if ((below += block.size) > state.height) return block;
  return null;
}

// selected draws how long the selected block lives, at its place in the band.
function selected(g, plot, x, y) {
  const block = pickedBlock();
  if (!block) return;
  let under = 0, below = 0;
  const live = shown.now.live;
  live.bytes.forEach((bytes, owner) => (under += layers.layerOf[owner] < state.pick ? bytes : 0));
  for (const other of shown.list) {
    if (other === block) break;
    below += other.size;
  }
  const middle = y(under + below + block.size / 2), from = Math.max(x(block.since), plot.x), to = Math.min(block.until === null ? plot.x + plot.w : x(block.until), plot.x + plot.w);
  g.strokeStyle = style("--ground");
  for (const width of [5, 2]) {
    g.lineWidth = width;
    g.beginPath();
    g.moveTo(from, middle - 5);
    g.lineTo(from, middle + 5);
    g.moveTo(from, middle);
    g.lineTo(to, middle);
    g.moveTo(to, middle - 5);
    g.lineTo(to, middle + 5);
    g.stroke();
    g.strokeStyle = style("--mark");
  }
}

const phaseColour = (name) => style("--p-" + name);

function drawLanes(g, plot, x) {
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  facts.lanes.filter((lane) => lane.items.length).forEach((lane, n) => {
    const top = plot.y + plot.h + margin.bottom + n * margin.lane;
    g.fillStyle = style("--soft");
    g.textAlign = "right";
    g.fillText(lane.name, plot.x - 8, top + margin.lane / 2 - 1);
    g.save();
    g.beginPath();
    g.rect(plot.x, top, plot.w, margin.lane);
    g.clip();
    let free = -Infinity; // where there is room for the next name
    const paints = (lane.phases || []).map(phaseColour), shades = lane.alarm ? [style("--alarm")] : [style("--rest"), style("--line")];
    lane.items.forEach((item, i) => {
      const left = x(item.from), right = item.to === undefined ? left + 2 : x(item.to), room = g.measureText(item.name).width + 8;
      if (right < plot.x || left > plot.x + plot.w) return;
      if (item.parts) phaseParts(item.parts, left, Math.max(right, left + 0.5), (phase, from, to) => {
        g.fillStyle = paints[phase];
        g.fillRect(from, top + 1, to - from, margin.lane - 4);
      });
      else {
        g.fillStyle = shades[i % shades.length];
        g.fillRect(left, top + 1, Math.max(right - left - 0.5, 1.5), margin.lane - 4);
      }
      const at = item.to === undefined ? Math.min(left + 4, plot.x + plot.w - room) : left + 4; // a moment at the right edge has its name before it
      if (item.to === undefined ? at < free || left < plot.x : right - left < room) return;
      g.fillStyle = style("--text");
      g.textAlign = "left";
      g.fillText(item.name, item.to === undefined && at < left + 4 ? left - room + 4 : at, top + margin.lane / 2 - 1);
      free = left + room;
    });
    g.restore();
  });
}

function cursor(g, plot, at) {
  if (at >= plot.x && at <= plot.x + plot.w) {
    g.strokeStyle = style("--mark");
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(at, plot.y - 4);
    g.lineTo(at, plot.y + plot.h);
    g.stroke();
    g.font = "600 12.5px system-ui, sans-serif";
    g.fillStyle = style("--text");
    g.textBaseline = "alphabetic";
    g.textAlign = "left";
    const room = g.measureText(shown.words).width;
    g.fillText(shown.words, Math.min(Math.max(at - room / 2, plot.x), plot.x + plot.w - room), plot.y - 9);
  }
  if (dragging && dragging.to !== dragging.from) {
    g.fillStyle = style("--accent");
    g.globalAlpha = 0.2;
    g.fillRect(plot.x + Math.min(dragging.from, dragging.to), plot.y, Math.abs(dragging.to - dragging.from), plot.h);
    g.globalAlpha = 1;
  }
}

const legendItem = (...parts) => {
  const item = make("li");
  item.append(...parts);
  return item;
};

// legend says what colours and lines stand for: those of memory, each of which can be picked, apart from those of phases.
function legend() {
  const list = [];
  for (let layer = 0; layer < layers.count; layer++) {
    const button = make("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(state.pick === layer));
    button.append(swatch(colour(layer)), make("span", layerName(layer)));
    button.addEventListener("click", () => pick(state.pick === layer ? null : layer, null));
    list.push(legendItem(button));
  }
  for (const level of facts.levels) list.push(legendItem(swatch(style("--mark"), level.dash.length ? level.dash : [11]), make("span", level.name)));
  if (facts.growth) list.push(legendItem(swatch(style("--alarm"), [5, 3]), make("span", "what stays grows by " + facts.growth.words)));
  element("legend").replaceChildren(...list);
  const phases = facts.lanes.flatMap((lane) => lane.phases || []);
  element("phases").replaceChildren(...(phases.length ? [legendItem("Phases")] : []), ...phases.map((phase) => legendItem(swatch(phaseColour(phase)), make("span", phase))));
  if (phases.length) element("phases").firstChild.className = "title";
}

const twinRows = 20;

// twin is the picture as a table: the highest moment of each of some stretches of what is shown.
function twin() {
  const head = make("tr"), {picture, count} = shown;
  head.append(make("th", "from"), make("th", "highest", "n"));
  for (let layer = 0; layer < layers.count; layer++) head.append(make("th", layerName(layer), "n"));
  const phases = facts.lanes.find((lane) => lane.phases);
  if (phases) head.append(make("th", "phases"));
  element("twinhead").replaceChildren(head);
  const rows = [];
  for (let n = 0; n < Math.min(twinRows, count); n++) {
    const first = Math.floor((n * count) / twinRows), behind = Math.max(Math.floor(((n + 1) * count) / twinRows), first + 1);
    let best = first;
    for (let c = first; c < behind && c < count; c++) if (picture.total[c] > picture.total[best]) best = c;
    const numbers = [sizeText(picture.total[best])];
    for (let layer = 0; layer < layers.count; layer++) numbers.push(sizeText(picture.bytes[best * picture.layers + layer]));
    rows.push(line(timeText(picture.times[first]), numbers, ...(phases ? [make("td", phasesBetween(phases, picture.times[first], picture.times[Math.min(behind, count)]).join(", "))] : [])));
  }
  element("twin").replaceChildren(...rows);
}

// reading says what is under the pointer.
function reading(c) {
  const parts = [], {picture} = shown;
  for (let layer = 0; layer < layers.count; layer++) parts.push([picture.bytes[c * picture.layers + layer], layerName(layer)]);
  parts.sort((a, b) => b[0] - a[0]);
  element("reading").textContent = timeText(picture.times[c]) + ": " + sizeText(picture.total[c]) + " live. " + parts.filter((part) => part[0] > 0).slice(0, 3).map((part) => sizeText(part[0]) + " " + part[1]).join("; ");
  const phases = facts.lanes.find((lane) => lane.phases), then = phases ? phasesBetween(phases, picture.times[c], picture.times[c + 1]) : [];
  if (then.length) element("reading").textContent += "; in " + then.join(", ");
}
