"use strict";
// The tables of the moment that is looked at, and of the stretch of time before it.

const rowsShown = 12, blocksShown = 12, blocksPicked = 1000, crossRows = 12, crossColumns = 7;

const groupsOf = (by) => facts.owners.map((owner) => owner.k[by]);
const wanted = () => element("find").value.toLowerCase();
const sum = (rows, of) => rows.reduce((total, row) => total + of(row), 0);

function owners(now) {
  const names = facts.keys[state.by], rows = grouped(now.live, layers.groupOf, names), total = now.live.total;
  const before = now.before && new Map(grouped(now.before, layers.groupOf, names).map((row) => [row.name, row.bytes]));
  const found = rows.filter((row) => row.name.toLowerCase().includes(wanted()));
  const most = rows.length ? rows[0].bytes : 1;
  const made = (name, bytes, change, count) => line(name, [sizeText(bytes), partText(bytes, total), change === null ? "" : changeText(change), countText(count)]);
  const list = (state.all ? found : found.slice(0, rowsShown)).map((row) => {
    const layer = layers.names.indexOf(row.name), one = made(row.name, row.bytes, before && row.bytes - (before.get(row.name) || 0), row.count);
    if (layer >= 0 && layer === state.pick) one.className = "picked";
    return barred(one, row.bytes, most, colour(layer < 0 ? layers.names.length : layer));
  });
  const last = made("total", total, before && total - sum([...before.values()], (bytes) => bytes), sum(rows, (row) => row.count));
  last.className = "total";
  element("owners").replaceChildren(...list, last);
  element("whose").textContent = facts.by[state.by];
  element("change").textContent = before ? "since " + timeText(now.edgeTime) : "";
  element("more").hidden = found.length <= rowsShown;
  element("more").textContent = state.all ? "Show fewer rows" : "Show all " + countText(found.length) + " rows";
  element("when").textContent = (now.event === facts.peak ? "At the peak, " : "At ") + timeText(now.time);
  element("whenmore").textContent = sizeText(total) + " in " + countText(sum(rows, (row) => row.count)) + " blocks" + where(now.time);
  return rows;
}

// where names the iteration that a time lies in.
function where(time) {
  for (const lane of facts.lanes)
    for (const item of lane.items) if (item.to !== undefined && item.from <= time && time < item.to) return ", " + item.title;
  return "";
}

// cross divides the moment by module and category at once.
function cross(live) {
  const module = facts.by.indexOf("module"), category = facts.by.indexOf("category");
  const table = module < 0 || category < 0 ? {columns: [], rows: []} : crossed(live, groupsOf(module), facts.keys[module], groupsOf(category), facts.keys[category]);
  const named = table.rows.length > 1;
  const shownColumns = table.columns.slice(0, crossColumns), rest = table.columns.length - shownColumns.length;
  const head = make("tr");
  head.append(make("th", "module"), make("th", "bytes", "n"), ...shownColumns.map((name) => make("th", name, "n")));
  if (rest) head.append(make("th", rest + " more", "n"));
  element("crosshead").replaceChildren(head);
  const cells = (of) => [...shownColumns.map((_, column) => of(column)), ...(rest ? [sum(table.columns.slice(crossColumns), (name) => of(table.columns.indexOf(name)))] : [])].map((bytes) => (bytes ? sizeText(bytes) : ""));
  const found = table.rows.filter((row) => row.name.toLowerCase().includes(wanted()));
  const rows = found.slice(0, crossRows).map((row) => line(row.name, [sizeText(row.bytes), ...cells((column) => row.cells[column])]));
  if (found.length > crossRows) {
    const others = found.slice(crossRows);
    rows.push(line(countText(others.length) + " more", [sizeText(sum(others, (row) => row.bytes)), ...cells((column) => sum(others, (row) => row.cells[column]))]));
  }
  const last = line("total", [sizeText(live.total), ...cells((column) => sum(table.rows, (row) => row.cells[column]))]);
  last.className = "total";
  fillTable("cross", named ? [...rows, last] : []);
}

function blocks(list) {
  const first = list.slice(0, blocksShown), block = pickedBlock();
  if (block && !first.includes(block)) first.push(block);
  element("blockswhose").textContent = element("stackswhose").textContent = state.pick === null ? "" : "of " + layerName(state.pick);
  element("picked").textContent = !block ? "" : "Selected: " + sizeText(block.size) + " of " + layerName(state.pick) + ", allocated at " + blockName(facts, block.owner) + ", from " + timeText(block.since) + " to " + untilText(block) + ".";
  element("blocks").replaceChildren(...first.map((block) => {
    const row = make("tr");
    if (block === pickedBlock()) row.className = "picked";
    row.append(make("td", sizeText(block.size), "n"), make("td", timeText(block.since), "n"), make("td", untilText(block), "n"), make("td", blockName(facts, block.owner), "name"));
    return row;
  }));
}

const untilText = (block) => (block.until === null ? "the end" : timeText(block.until));

// generation lists what came since the edge and is still there, and how long the blocks lived that ended since.
function generation(now) {
  const from = now.since ? timeText(now.edgeTime) : "the start", names = facts.keys[state.by];
  const rows = now.since ? grouped(now.since, layers.groupOf, names) : [];
  fillTable("since", rows.slice(0, rowsShown).map((row) => barred(line(row.name, [sizeText(row.bytes), countText(row.count)]), row.bytes, rows[0].bytes, style("--c0"))));
  const ended = sum(now.lives, (row) => row.count), words = countText(ended) + (ended === 1 ? " block" : " blocks") + " ended between " + from + " and " + timeText(now.time);
  element("sincewords").textContent = now.since ? sizeText(now.since.total) + " in " + countText(sum(rows, (row) => row.count)) + " blocks were allocated since " + from + " and still live at " + timeText(now.time) + "." : "";
  element("livewords").textContent = ended ? words + ", after these times:" : "";
  const most = now.lives.reduce((highest, row) => Math.max(highest, row.count), 1);
  fillTable("lives", now.lives.map((row) => barred(line(livedText(row.below), [countText(row.count), sizeText(row.bytes)]), row.count, most, style("--c4"))));
}

// livedText is an order of magnitude of lives, the shortest without a lower bound.
const livedText = (below) => (below === 10 ** shortestPower ? "less than " + roundTime(below) : roundTime(below / 10) + " to " + roundTime(below));

const roundTime = (ns) => (ns >= 1e9 ? ns / 1e9 + " s" : ns >= 1e6 ? ns / 1e6 + " ms" : ns / 1e3 + " us");
