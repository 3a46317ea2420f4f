"use strict";
// Call stacks of the moment, as wide as their bytes: outermost frames first.

const stackRow = 20, stackRows = 34, stackTable = 30;

const frameName = (frame) => facts.frames[frame].t;
const heaviest = (node) => [...node.children.values()].sort((a, b) => b.bytes - a.bytes);

function stacks(live) {
  const area = element("stacks"), root = tree(live, facts.owners.map((owner) => owner.f)), width = area.clientWidth, find = wanted();
  const boxes = [];
  let top = root, deepest = 0;
  for (const frame of state.zoomed || []) if (top.children.has(frame)) top = top.children.get(frame);
  const path = [];
  for (let node = top; node !== root; node = node.parent) path.unshift(node);
  const box = (left, share, row, text, node, own) => {
    if (share * width < 2.5 || row >= stackRows) return false;
    deepest = Math.max(deepest, row);
    const made = make("button", share * width > 24 ? text : "", own ? "own" : "");
    made.type = "button";
    made.title = text + "\n" + sizeText(node.bytes) + ", " + partText(node.bytes, live.total);
    made.setAttribute("aria-label", made.title);
    made.tabIndex = boxes.length ? -1 : 0; // arrow keys go on from there
    made.dataset.row = row;
    made.style.left = left * 100 + "%";
    made.style.width = share * 100 + "%";
    made.style.top = row * stackRow + "px";
    if (find && text.toLowerCase().includes(find)) made.classList.add("found");
    made.addEventListener("click", () => {
      const to = [];
      for (let n = node; n !== root; n = n.parent) to.unshift(n.frame);
      state.zoomed = node === top ? to.slice(0, -1) : to;
      stacks(live);
      area.firstElementChild.focus();
    });
    boxes.push(made);
    return true;
  };
  box(0, 1, 0, (path.length ? "◂ all " : "all ") + sizeText(live.total), root, false);
  let row = 1;
  for (const node of path.slice(0, -1).slice(-2)) box(0, 1, row++, frameName(node.frame), node, facts.frames[node.frame].u);
  const walk = (node, left, share, row) => {
    if (node !== root && !box(left, share, row, frameName(node.frame), node, facts.frames[node.frame].u)) return;
    for (const child of heaviest(node)) {
      const part = (share * child.bytes) / node.bytes;
      walk(child, left, part, node === root ? row : row + 1);
      left += part;
    }
  };
  walk(top, 0, 1, row);
  area.replaceChildren(...boxes);
  area.style.height = (deepest + 1) * stackRow + "px";
  stackWords(root, live.total);
}

// stackWords says in a line what is widest, and lists the widest frames as a table.
function stackWords(root, total) {
  const rows = [], path = [];
  let node = root;
  while (node.children.size) {
    const next = heaviest(node)[0];
    if (next.bytes * 2 < total) break;
    path.push(frameName(next.frame));
    node = next;
  }
  element("stackwords").textContent = path.length ? partText(node.bytes, total) + " through " + path[path.length - 1] + "." : "";
  const walk = (node, depth) => {
    for (const child of heaviest(node)) {
      if (rows.length >= stackTable || child.bytes * 100 < total) return;
      const row = line(" ".repeat(2 * depth) + frameName(child.frame), [sizeText(child.bytes), partText(child.bytes, total)]);
      rows.push(row);
      walk(child, depth + 1);
    }
  };
  walk(root, 0);
  element("stacktwin").replaceChildren(...rows);
}

// stackKeys lets arrow keys go from box to box.
function stackKeys(key) {
  const boxes = [...element("stacks").children], at = boxes.indexOf(document.activeElement);
  if (at < 0) return;
  const from = boxes[at].getBoundingClientRect(), middle = from.left + from.width / 2, row = Number(boxes[at].dataset.row);
  const beside = (wantedRow) => boxes.filter((box) => Number(box.dataset.row) === wantedRow).sort((a, b) => distance(a, middle) - distance(b, middle))[0];
  const inRow = boxes.filter((box) => Number(box.dataset.row) === row), place = inRow.indexOf(boxes[at]);
  const next = {ArrowUp: () => beside(row - 1), ArrowDown: () => beside(row + 1), ArrowLeft: () => inRow[place - 1], ArrowRight: () => inRow[place + 1]}[key.key];
  if (!next) return;
  key.preventDefault();
  const box = next();
  if (box) box.focus();
}

function distance(box, x) {
  const edges = box.getBoundingClientRect();
  return x < edges.left ? edges.left - x : x > edges.right ? x - edges.right : 0;
}
