"use strict";
// What is looked at, how it changes, and what the address says of it.

const colours = 8, layersShown = colours - 1;

// state is what the fragment of the address says: the key that divides, the event that is looked at, the stretch of positions that is shown, and what those go by. pick is the layer that was picked, height how many of its bytes lie below the place that was clicked at.
const state = {by: 0, event: 0, byEvents: false, from: 0, to: 0, edge: null, all: false, zoomed: null, pick: null, height: null};
let facts, sections, source, layers, shown = null, dragging = null;

const origin = () => (state.byEvents ? facts.older : facts.from);
const end = () => (state.byEvents ? source.events : facts.to);

async function readFragment() {
  const given = new URLSearchParams(location.hash.slice(1));
  const by = facts.by.indexOf(given.get("by"));
  state.by = by < 0 ? facts.first : by;
  const number = (name, otherwise) => (given.has(name) && isFinite(Number(given.get(name))) ? Number(given.get(name)) : otherwise);
  state.byEvents = given.has("axis") ? given.get("axis") === "events" : source.crowded;
  state.from = Math.max(origin(), number("from", origin()));
  state.to = Math.min(end(), number("to", end()));
  if (state.to <= state.from) [state.from, state.to] = [origin(), end()];
  const at = number("at", -1);
  state.event = at < 0 ? facts.peak : Math.max(0, await source.eventAt(at, false));
  state.edge = state.from > origin() ? await source.eventAt(state.from, state.byEvents) : null;
  element("find").value = given.get("find") || "";
}

function writeFragment(now) {
  const said = new URLSearchParams();
  if (state.by !== facts.first) said.set("by", facts.by[state.by]);
  if (state.event !== facts.peak) said.set("at", String(now.time));
  if (state.byEvents !== source.crowded) said.set("axis", state.byEvents ? "events" : "time");
  if (state.from > origin()) said.set("from", String(Math.round(state.from)));
  if (state.to < end()) said.set("to", String(Math.round(state.to)));
  if (element("find").value) said.set("find", element("find").value);
  const text = said.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

// divide finds the layers of the picture: the groups that hold most at the peak and over the run, and the rest.
async function divide() {
  const names = facts.keys[state.by], groupOf = groupsOf(state.by), span = Math.max(facts.end - facts.begin, 1);
  const weight = await source.weights({by: state.by}), {live} = await source.moment({event: facts.peak, edge: null}), atPeak = new Float64Array(names.length);
  live.bytes.forEach((bytes, owner) => (atPeak[groupOf[owner]] += bytes));
  const order = names.map((_, group) => group).filter((group) => weight[group] > 0).sort((a, b) => atPeak[b] + weight[b] / span - atPeak[a] - weight[a] / span);
  const first = order.slice(0, order.length > colours ? layersShown : colours);
  const layerOf = groupOf.map((group) => (first.indexOf(group) < 0 ? first.length : first.indexOf(group)));
  const shownNames = first.map((group) => names[group]);
  layers = {by: state.by, shown: first, names: shownNames, colours: coloursOf(shownNames, facts.own), count: first.length + (first.length < order.length ? 1 : 0), others: order.length - first.length, layerOf, groupOf};
}

let asked = 0;

// redraw asks for what the state names and shows it, unless something else has been asked for since.
async function redraw() {
  const mine = ++asked, {event, edge, from, to, byEvents} = state;
  const width = Math.max(1, Math.floor(plotOf(element("picture").clientWidth, 100).w));
  const find = wanted();
  const answers = await Promise.all([source.columns({from, to, count: width, byEvents, layers}), source.moment({event, edge}),
    source.largest({event, limit: state.height === null ? blocksShown : blocksPicked, find, layers, layer: state.pick}), source.position(event, byEvents), source.segments(event)]).catch(refused);
  if (mine !== asked || !answers) return;
  const [picture, now, list, at, segments] = answers;
  const words = (event === facts.peak ? "peak " + facts.peak_text : sizeText(now.live.total)) + " at " + timeText(now.time);
  shown = {picture, now, count: width, from, to, byEvents, cursor: at, words, list, segments};
  element("picture").setAttribute("aria-label", "Memory over time, " + timeText(picture.times[0]) + " to " + timeText(picture.times[width]) + ": " + words);
  paint();
  writeFragment(now);
}

// paint shows what was asked for last: the picture and the tables.
function paint() {
  if (!shown) return;
  draw();
  twin();
  owners(shown.now);
  cross(shown.now.live);
  generation(shown.now);
  blocks(shown.list);
  stacks(state.pick === null ? shown.now.live : liveOf(shown.now.live, layers.layerOf, state.pick));
  map(shown.segments);
}

// pick selects a layer, and the block at a height of it.
function pick(layer, height) {
  [state.pick, state.height] = [layer, height];
  legend();
  return redraw();
}

function look(event) {
  state.height = null;
  state.event = Math.min(Math.max(event, 0), source.events - 1);
  return redraw();
}

// zoom shows a stretch of positions, and its highest moment, or its last one.
async function zoom(from, to, last) {
  state.from = Math.max(origin(), from);
  state.to = Math.min(end(), to);
  state.edge = state.from > origin() ? await source.eventAt(state.from, state.byEvents) : null;
  return look(last ? await source.eventAt(state.to, state.byEvents) : await source.highest(state.from, state.to, state.byEvents));
}

function whole() {
  [state.pick, state.height] = [null, null];
  legend();
  [state.from, state.to, state.edge] = [origin(), end(), null];
  element("since-moment").value = element("until-moment").value = "";
  return redraw();
}

async function neighbour(direction) {
  const next = await source.summit(state.event, direction);
  if (next < 0) return;
  const at = await source.position(next, state.byEvents);
  if (at < state.from || at > state.to) [state.from, state.to, state.edge] = [origin(), end(), null];
  return look(next);
}

// moments are those with a name, between which memory can be looked for.
function moments() {
  const list = [];
  for (const lane of facts.lanes.filter((one) => !one.phases))
    for (const item of lane.items) list.push({time: item.to === undefined ? item.from : item.to, name: (item.to === undefined ? lane.name.replace(/s$/, "") + " " + item.name : "end of " + item.title).trim()});
  return list.sort((a, b) => a.time - b.time);
}

function fillMoments() {
  const list = moments().slice(0, 500);
  for (const [id, otherwise] of [["since-moment", "the start"], ["until-moment", "the end"]]) {
    const first = make("option", otherwise), before = element(id).value;
    first.value = "";
    element(id).replaceChildren(first, ...list.map((moment) => {
      const option = make("option", moment.name + ", " + timeText(moment.time));
      option.value = String(moment.time);
      return option;
    }));
    element(id).value = before;
  }
  element("between").hidden = !list.length;
}

// between shows what came between two moments and is still there at the second.
async function between() {
  const time = (id, otherwise) => (element(id).value === "" ? otherwise : Number(element(id).value));
  const from = time("since-moment", facts.begin), to = time("until-moment", facts.end);
  element("reading").textContent = to > from ? "" : "The second moment must come after the first.";
  if (to <= from) return;
  const at = async (t) => (state.byEvents ? Math.max(await source.eventAt(t, false), 0) : t);
  return zoom(await at(from), to >= facts.end ? end() : await at(to), true);
}

function columnAt(pointer) {
  const box = element("picture").getBoundingClientRect(), plot = plotOf(box.width, box.height);
  return Math.min(Math.max(Math.floor(((pointer.clientX - box.left - plot.x) / plot.w) * shown.count), 0), shown.count - 1);
}

function listenToPicture() {
  const canvas = element("picture"), position = (column) => shown.from + (column / shown.count) * (shown.to - shown.from);
  canvas.addEventListener("pointermove", (pointer) => {
    if (!shown) return;
    reading(columnAt(pointer));
    if (dragging) {
      dragging.to = columnAt(pointer);
      draw();
    }
  });
  canvas.addEventListener("pointerdown", (pointer) => {
    if (!shown) return;
    dragging = {from: columnAt(pointer), to: columnAt(pointer)};
    canvas.setPointerCapture(pointer.pointerId);
  });
  canvas.addEventListener("pointerup", (pointer) => {
    const c = columnAt(pointer), begun = dragging && dragging.from;
    dragging = null;
    if (begun !== null && Math.abs(c - begun) > 4) zoom(position(Math.min(c, begun)), position(Math.max(c, begun) + 1));
    else {
      const band = bandAt(c, pointer.clientY);
      state.event = Math.max(shown.picture.event[c], 0);
      pick(band && band.layer, band && band.height);
    }
  });
  canvas.addEventListener("pointercancel", () => (dragging = null));
  canvas.addEventListener("keydown", (key) => {
    const far = key.shiftKey ? 100 : 1;
    const moves = {ArrowLeft: () => look(state.event - far), ArrowRight: () => look(state.event + far), Home: () => look(facts.peak), End: () => look(source.events - 1),
      PageUp: () => neighbour(-1), PageDown: () => neighbour(1), Escape: whole};
    if (!moves[key.key]) return;
    key.preventDefault();
    moves[key.key]();
  });
}

const copyCommand = () => copied(element("copy"), facts.command + " --at " + (shown.now.time / 1e9).toFixed(9) + "s --by " + facts.by[state.by].replace("each ", "") + " " + facts.path);

function listen() {
  listenToPicture();
  element("axis").addEventListener("change", () => {
    state.byEvents = element("axis").value === "events";
    whole();
  });
  for (const [id, act] of Object.entries({peak: () => look(facts.peak), before: () => neighbour(-1), behind: () => neighbour(1), all: whole, copy: copyCommand})) element(id).addEventListener("click", act);
  element("more").addEventListener("click", () => {
    state.all = !state.all;
    owners(shown.now);
  });
  element("find").addEventListener("input", redraw);
  element("by").addEventListener("change", async () => {
    [state.by, state.pick, state.height] = [element("by").selectedIndex, null, null];
    await divide();
    legend();
    redraw();
  });
  element("since-moment").addEventListener("change", between);
  element("until-moment").addEventListener("change", between);
  element("stacks").addEventListener("keydown", stackKeys);
  element("map").addEventListener("pointermove", mapReading);
  document.addEventListener("keydown", (key) => {
    if (key.key !== "/" || document.activeElement === element("find")) return;
    key.preventDefault();
    element("find").focus();
  });
  let width = element("timeline").clientWidth;
  new ResizeObserver(() => {
    if (element("timeline").clientWidth === width) return;
    width = element("timeline").clientWidth;
    redraw();
  }).observe(element("timeline"));
}

// readFacts takes what the page holds out of a document: this one, or one that the server sent later.
async function readFacts(from) {
  const next = JSON.parse(from.getElementById("facts").textContent);
  sections = (name) => inflate(from.getElementById(name).textContent);
  if (!next.events) return null;
  if (next.remote) return {facts: next, source: remoteSource(next, ask)};
  const unpacked = unpacker(next);
  await inflateInto(from.getElementById("columns").textContent, unpacked.take);
  await sliced(linking(unpacked));
  return {facts: next, source: localSource(next, unpacked.model, sections)};
}

async function begin() {
  themes(() => source && (legend(), paint()));
  const read = await readFacts(document);
  if (!read) {
    follow(JSON.parse(element("facts").textContent));
    return;
  }
  ({facts, source} = read);
  element("by").replaceChildren(...facts.by.map((name) => make("option", name)));
  await readFragment();
  element("by").selectedIndex = state.by;
  element("axis").value = state.byEvents ? "events" : "time";
  document.documentElement.classList.add("scripted");
  fillMoments();
  await divide();
  legend();
  listen();
  await redraw();
  document.documentElement.dataset.ready = "yes";
  follow(facts);
}

begin();
