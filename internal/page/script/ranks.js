"use strict";
// The page of many ranks: the picture of all of them, and the row of the one that is selected.

const room = {left: 92, right: 118, top: 8, bottom: 22}, rowHeights = {most: 22, all: 560}, labelGap = 13;
const state = {kind: 0, cursor: null, picked: false}; // cursor: number of an item and a column
let facts, heat, several, colouring, middles, most, items, painted; // middles are by row the medians that it is compared with, by column

const byBytes = () => colouring === "bytes";
const heightOf = () => Math.min(items.length * rowHeights.most, rowHeights.all);
const widthOf = () => element("heat").clientWidth - room.left - room.right;
const edge = (column) => room.left + Math.round((column * widthOf()) / heat.columns.length);

// channels are those of a colour of the style sheet.
const channels = (name) => style(name).match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
const mixed = (from, to, part) => "rgb(" + from.map((c, i) => Math.round(c + (to[i] - c) * part)).join(",") + ")";

// shader gives the colour of a value in a column.
function shader() {
  const [ground, even, above, below] = ["--ground", "--line", "--c5", "--c0"].map(channels);
  if (byBytes()) return (value) => mixed(ground, below, 0.08 + (0.92 * value) / most);
  return (value, median) => {
    const d = deviation(value, median);
    return mixed(even, d > 0 ? above : below, Math.abs(d));
  };
}

function highest() {
  let bytes = 1;
  for (let row = 0; row < heat.rows; row++) heat.columns.forEach((_, column) => (bytes = Math.max(bytes, heat.cell(state.kind, row, column))));
  return bytes;
}

// whose is whose median a process is compared with: its group's number, -1 of all.
const whose = (item) => (several && colouring !== "times" && item.row >= 0 ? facts.likes[item.row] : -1);
const middleOf = (item, column) => (item.row < 0 ? 0 : middles[item.row][column]);

// strengthOf gives how much an item must be seen in a column.
function strengthOf(column) {
  return (item) => (valueOf(item, column) < 0 ? -1 : byBytes() ? valueOf(item, column) : Math.abs(deviation(valueOf(item, column), middleOf(item, column))));
}

const valueOf = (item, column) => (item.row < 0 ? -1 : heat.cell(state.kind, item.row, column));

// arrange puts the rows in order, and paints them.
function arrange() {
  const at = state.cursor && items[state.cursor.item];
  items = orderOf(facts, element("order").value === "group");
  if (at) state.cursor.item = items.findIndex((item) => item.row === at.row && item.rank === at.rank);
  paint();
}

function paint() {
  const canvas = element("heat"), height = heightOf();
  canvas.style.height = room.top + height + room.bottom + "px";
  place(items, height);
  const {g, width} = sized(canvas);
  colouring = element("colour").value;
  const rows = facts.names.map((_, row) => row), medianOf = new Map();
  middles = rows.map((row) => {
    const group = whose({row});
    if (!medianOf.has(group)) medianOf.set(group, medians(heat, state.kind, group < 0 ? rows : rows.filter((other) => facts.groups[other] === group)));
    return medianOf.get(group);
  });
  most = highest();
  const shade = shader(), ground = style("--ground"), each = widthOf() / heat.columns.length;
  heat.columns.forEach((_, column) => {
    const left = edge(column), wide = edge(column + 1) - left - (each > 5 ? 1 : 0);
    for (const {item, top, bottom} of paintOrder(items, height, strengthOf(column))) {
      const value = valueOf(item, column);
      g.fillStyle = value < 0 ? ground : shade(value, middleOf(item, column));
      g.fillRect(left, room.top + top, wide, bottom - top - (bottom - top > 5 ? 1 : 0));
    }
  });
  g.font = "11px system-ui, sans-serif";
  g.textBaseline = "middle";
  rowNames(g);
  markNames(g, width);
  columnNames(g, height);
  painted = document.createElement("canvas");
  [painted.width, painted.height] = [canvas.width, canvas.height];
  painted.getContext("2d").drawImage(canvas, 0, 0);
  legend();
  point();
}

// rowNames names rows at the left: all of them if there is room, else some, or the groups.
function rowNames(g) {
  const groups = element("order").value === "group";
  let next = -Infinity, group = -1;
  g.fillStyle = style("--soft");
  g.textAlign = "right";
  items.forEach((item, i) => {
    const begins = item.group !== group, text = groups ? (item.row < 0 ? "missing" : "group " + (item.group + 1)) : item.name;
    group = item.group;
    const y = room.top + (groups ? item.top + labelGap / 2 : (item.top + item.bottom) / 2), round = items.length <= heightOf() / labelGap || (item.rank % stepOf() === 0 && item.row >= 0);
    if (groups && begins && i) g.fillRect(room.left - 80, room.top + item.top, 76, 1);
    if ((groups ? !begins : !round) || y < next) return;
    g.fillText(text, room.left - 8, y, room.left - 10);
    next = y + labelGap;
  });
}

// stepOf is at which distance ranks are named.
function stepOf() {
  const list = ticks(0, items.length, heightOf() / 40, false);
  return Math.max(list.length > 1 ? list[1] : 1, 1);
}

// markNames names what differs at the right.
function markNames(g, width) {
  const marked = items.filter((item) => item.mark), middles = marked.map((item) => (Math.min(item.top, heightOf() - 2) + Math.max(item.bottom, item.top + 2)) / 2), x = width - room.right;
  g.fillStyle = g.strokeStyle = style("--alarm");
  g.textAlign = "left";
  g.lineWidth = 1;
  const tops = spread(middles, labelGap, heightOf());
  marked.forEach((item, i) => {
    const y = room.top + middles[i];
    g.beginPath();
    g.moveTo(x + 2, y);
    g.lineTo(x + 9, y - 4);
    g.lineTo(x + 9, y + 4);
    g.fill();
    if (i >= tops.length) return;
    g.beginPath();
    g.moveTo(x + 9, y);
    g.lineTo(x + 20, room.top + tops[i]);
    g.stroke();
    g.fillText(item.name + (item.row < 0 ? " missing" : ""), x + 23, room.top + tops[i], room.right - 24);
  });
}

// columnNames names columns below: their first iterations, or what the memory is for.
function columnNames(g, height) {
  g.fillStyle = style("--soft");
  g.textAlign = heat.crossed ? "center" : "left";
  let next = -Infinity;
  heat.columns.forEach((name, column) => {
    const wide = edge(column + 1) - edge(column), text = heat.crossed ? shortened(g, name, wide - 6) : name.replace(/^iterations? | to .*/g, "");
    const x = heat.crossed ? edge(column) + wide / 2 : edge(column);
    if (!heat.crossed && x < next) return;
    g.fillText(text, x, room.top + height + 12);
    next = x + g.measureText(text).width + 14;
  });
}

function shortened(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  while (text.length > 1 && g.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

function legend() {
  const list = byBytes() ? [0, 0.25, 0.5, 0.75, 1].map((part) => [most * part, 0, sizeText(Math.round(most * part))]) : [[1, 2, "half or less"], [3, 4, "0.75"], [19, 20, "0.95"], [1, 1, "the median"], [21, 20, "1.05"], [5, 4, "1.25"], [3, 2, "1.5"], [2, 1, "twice or more"]];
  const shade = shader();
  element("legend").replaceChildren(make("li", byBytes() ? "bytes" : element("colour").selectedOptions[0].textContent + ", of that column", "title"), ...list.map(([value, median, text]) => {
    const one = make("li");
    one.append(swatch(shade(value, median)), make("span", text));
    return one;
  }));
}

// point outlines the cell of the cursor, and says what it is.
function point() {
  const canvas = element("heat"), g = canvas.getContext("2d"), at = state.cursor;
  g.save();
  g.setTransform(1, 0, 0, 1, 0, 0);
  g.clearRect(0, 0, canvas.width, canvas.height);
  g.drawImage(painted, 0, 0);
  g.restore();
  read(at);
  pick(at && state.picked ? items[at.item] : null);
  if (!at) return;
  const item = items[at.item], left = edge(at.column);
  g.strokeStyle = style("--mark");
  g.lineWidth = 2;
  g.strokeRect(left - 1, room.top + item.top - 2, edge(at.column + 1) - left + 2, item.bottom - item.top + 4);
}

// read says what a cell is.
function read(at) {
  if (!at) return (element("reading").textContent = "");
  const item = items[at.item], value = valueOf(item, at.column), host = item.row < 0 ? "" : facts.hosts[facts.host[item.row]];
  let text = item.name + (host ? " on " + host : "");
  if (item.row >= 0) {
    text += ", " + heat.columns[at.column] + (heat.crossed || !state.kind ? "" : ", " + heat.kinds[state.kind]) + ": ";
    text += value < 0 ? "no value" : sizeText(value) + ", " + timesText(value, middleOf(item, at.column), whose(item) < 0 ? "all" : "group " + (whose(item) + 1));
  }
  element("reading").textContent = text + (item.mark ? ". " + item.mark[0].toUpperCase() + item.mark.slice(1) : "") + ".";
}

// pick shows where the report of a process is.
function pick(item) {
  for (const row of document.querySelectorAll("tr.picked")) row.classList.remove("picked");
  const row = item && element("r" + item.row);
  element("picked").hidden = !row;
  if (!row) return;
  row.classList.add("picked");
  element("row").textContent = item.name + " in the table";
  element("row").setAttribute("href", "#" + row.id);
  element("command").textContent = row.querySelector("code").textContent;
}

// itemAt is the number of the item that is painted at a height: a marked one that is near, else the strongest one.
function itemAt(y, column) {
  const found = paintOrder(items, heightOf(), strengthOf(column)).reverse().find(({top, bottom}) => top <= y && y < bottom);
  return found ? items.indexOf(found.item) : -1;
}

// columnAt is the column that is nearest to a number.
const columnAt = (number) => Math.min(Math.max(number, 0), heat.columns.length - 1);

function under(pointer) {
  const box = element("heat").getBoundingClientRect(), y = pointer.clientY - box.top - room.top;
  if (y < 0 || y >= heightOf()) return null;
  const column = columnAt(Math.floor(((pointer.clientX - box.left - room.left) / widthOf()) * heat.columns.length)), item = itemAt(Math.floor(y), column);
  return item < 0 ? null : {item, column};
}

function press(key) {
  const at = state.cursor || {item: 0, column: heat.columns.length - 1}, rows = {ArrowUp: -1, ArrowDown: 1}[key.key], columns = {ArrowLeft: -1, ArrowRight: 1}[key.key];
  const next = {PageDown: 1, PageUp: -1}[key.key];
  if (key.key === "Escape") state.cursor = null;
  else if (rows || columns) state.cursor = {item: Math.min(Math.max(at.item + (state.cursor ? rows || 0 : 0), 0), items.length - 1), column: columnAt(at.column + (columns || 0))};
  else if (next) {
    let item = state.cursor ? at.item + next : next > 0 ? 0 : items.length - 1;
    while (items[item] && !items[item].mark) item += next;
    if (items[item]) state.cursor = {item, column: at.column};
  } else return;
  key.preventDefault();
  state.picked = true;
  point();
}

function choose(kind) {
  state.kind = kind;
  [...element("kinds").children].forEach((button, n) => button.setAttribute("aria-pressed", String(n === kind)));
  paint();
}

async function beginRanks() {
  facts = JSON.parse(element("facts").textContent);
  heat = heatOf(facts, await inflate(element("columns").textContent));
  items = orderOf(facts, false);
  several = new Set(facts.groups).size > 1 && facts.likes.some((group) => group >= 0);
  if (!several) element("colour").options[0].remove();
  document.documentElement.classList.add("scripted");
  themes(() => paint());
  if (!heat.crossed && heat.kinds.length > 1) {
    heat.kinds.forEach((name, kind) => {
      const button = make("button", name);
      button.type = "button";
      button.addEventListener("click", () => choose(kind));
      element("kinds").append(button);
    });
  }
  const canvas = element("heat");
  element("colour").addEventListener("input", paint);
  element("order").addEventListener("input", arrange);
  canvas.addEventListener("pointermove", (pointer) => read(under(pointer) || state.cursor));
  canvas.addEventListener("pointerleave", () => read(state.cursor));
  canvas.addEventListener("click", (pointer) => {
    state.cursor = under(pointer);
    state.picked = state.cursor !== null;
    point();
  });
  canvas.addEventListener("keydown", press);
  element("row").addEventListener("click", () => {
    const part = document.querySelector("tr.picked").closest("details");
    if (part) part.open = true;
  });
  window.addEventListener("resize", paint);
  choose(0);
  document.documentElement.dataset.ready = "yes";
}

beginRanks();
