"use strict";
// The map: what the allocator took from the driver at the moment, segment by segment, with blocks and holes.

const mapRows = 24, mapRow = 15;

function map(answer) {
  element("mappanel").hidden = !answer;
  if (!answer) return;
  const all = mapFacts(answer.segments);
  const list = [...answer.segments].sort((a, b) => b.size - b.held - (a.size - a.held) || b.size - a.size).slice(0, mapRows).sort((a, b) => a.device - b.device || b.size - a.size || a.address - b.address);
  element("mapwords").textContent = mapSentence(answer, all);
  drawMap(list);
  const several = answer.segments.some((s) => s.device !== answer.segments[0].device);
  element("maptwin").replaceChildren(...list.map((s) => line((several ? "device " + s.device + ", " : "") + "0x" + s.address.toString(16), [sizeText(s.size), sizeText(s.held), sizeText(s.size - s.held), countText(s.holes.length), sizeText(s.hole)], make("td", keeps(s), "name"))));
  element("mapmore").textContent = list.length < answer.segments.length ? "The " + list.length + " segments with most free memory, of " + countText(answer.segments.length) + "." : "";
  shown.map = list;
}

// mapSentence sums the map up, and names what keeps most memory for least.
function mapSentence(answer, all) {
  if (!answer.segments.length) return "The allocator held no memory of the driver.";
  const free = all.size - all.held;
  let text = sizeText(all.size) + " in " + countText(answer.segments.length) + (answer.segments.length === 1 ? " segment, " : " segments, ") + sizeText(all.held) + " of it in blocks; ";
  text += free ? sizeText(free) + " free in " + countText(all.holes) + (all.holes === 1 ? " hole" : " holes, the largest " + sizeText(all.largest)) + "." : "nothing is free.";
  if (all.whole) text += " " + sizeText(all.whole) + " of that lies in segments without blocks, which can go back to the driver.";
  if (all.pin) text += " " + keeps(all.pin) + " " + (all.pin.blocks.length === 1 ? "keeps" : "keep") + " a segment of " + sizeText(all.pin.size) + ".";
  if (answer.outside) text += " " + sizeText(answer.outside) + " of blocks lie outside of known segments.";
  return text;
}

// keeps names the blocks of a segment that is mostly free.
function keeps(s) {
  if (!s.blocks.length) return "no block";
  const most = s.blocks.reduce((a, b) => (b.size > a.size ? b : a));
  return s.blocks.length === 1 ? "One block of " + sizeText(most.size) + " (" + blockName(facts, most.owner) + ")" : countText(s.blocks.length) + " blocks of " + sizeText(s.held) + " (the largest: " + blockName(facts, most.owner) + ")";
}

function drawMap(list) {
  const canvas = element("map");
  canvas.style.height = Math.max(list.length, 1) * mapRow + 4 + "px";
  const {g, width} = sized(canvas), most = list.reduce((highest, s) => Math.max(highest, s.size), 1), room = width - margin.left - margin.right;
  g.font = "11px system-ui, sans-serif";
  g.textAlign = "right";
  g.textBaseline = "middle";
  list.forEach((s, n) => {
    const top = n * mapRow + 2, scale = Math.max(room * (s.size / most), 6) / s.size;
    g.fillStyle = style("--soft");
    g.fillText(sizeText(s.size).replace(/\.0+ /, " "), margin.left - 8, top + mapRow / 2 - 1);
    g.fillStyle = style("--panel");
    g.fillRect(margin.left, top, s.size * scale, mapRow - 3);
    for (const b of s.blocks) {
      g.fillStyle = colour(layers.layerOf[b.owner]);
      g.fillRect(margin.left + b.at * scale, top, Math.max(b.size * scale - 0.4, 0.6), mapRow - 3);
    }
    g.strokeStyle = style("--rest");
    g.lineWidth = 1;
    g.strokeRect(margin.left + 0.5, top + 0.5, Math.max(s.size * scale - 1, 1), mapRow - 4);
  });
}

// mapReading says what is under the pointer.
function mapReading(pointer) {
  const box = element("map").getBoundingClientRect(), s = (shown.map || [])[Math.floor((pointer.clientY - box.top - 2) / mapRow)];
  if (!s) return;
  const most = shown.map.reduce((highest, segment) => Math.max(highest, segment.size), 1), room = box.width - margin.left - margin.right;
  const at = (pointer.clientX - box.left - margin.left) / (Math.max(room * (s.size / most), 6) / s.size);
  const block = s.blocks.find((b) => b.at <= at && at < b.at + b.size), hole = s.holes.find((h) => h.at <= at && at < h.at + h.size);
  element("mapreading").textContent = "0x" + s.address.toString(16) + " on device " + s.device + ": " + (block ? sizeText(block.size) + " of " + blockName(facts, block.owner) : hole ? sizeText(hole.size) + " free" : sizeText(s.size));
}
