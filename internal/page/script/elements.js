"use strict";
// Elements of the document. Names come from traces and are only ever set as text.

const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// barred puts a bar of bytes' part of most behind the name of a row.
function barred(row, bytes, most, fill) {
  const cell = row.cells[0], name = make("span", cell.textContent), picture = svg("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"});
  picture.append(svg("rect", {width: String(Math.max((100 * bytes) / Math.max(most, 1), 0.4)), height: "10", fill}));
  cell.classList.add("barred");
  cell.replaceChildren(picture, name);
  return row;
}

// line is a table's row of a name and numbers.
function line(name, numbers, ...cells) {
  const row = make("tr");
  row.append(make("td", name, "name"), ...numbers.map((text) => make("td", text, "n")), ...cells);
  return row;
}

// fill replaces a table's rows. One without rows is not shown.
function fillTable(id, rows) {
  element(id).replaceChildren(...rows);
  const part = element(id).closest("[data-panel]");
  if (part) part.hidden = rows.length === 0;
}

// swatch shows the colour of a layer, or the dashes of a line.
function swatch(fill, dash) {
  const box = svg("svg", {class: "swatch", viewBox: "0 0 11 11", "aria-hidden": "true"});
  if (dash) box.append(svg("path", {d: "M0 5.5H11", stroke: fill, "stroke-dasharray": dash.join(" ")}));
  else box.append(svg("rect", {width: "11", height: "11", fill}));
  return box;
}

// sized makes a canvas as many pixels as the screen has for it, and gives what draws on it.
function sized(canvas) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  return {g, width, height};
}

const bytesOf = (text) => (Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
const inflateStep = 1 << 20; // letters of base64 at once, a multiple of four

// inflated opens a section of columns, base64 of what deflate made of them, as a stream: neither what is packed nor what comes out lies in one piece.
function inflated(text) {
  let at = 0;
  const packed = new ReadableStream({
    pull(into) {
      if (at >= text.length) return into.close();
      into.enqueue(bytesOf(text.slice(at, (at += inflateStep))));
    },
  });
  return packed.pipeThrough(new DecompressionStream("deflate-raw"));
}

const inflate = (text) => new Response(inflated(text)).arrayBuffer();

// inflateInto hands a section's bytes to take as they come.
async function inflateInto(text, take) {
  for (const pieces = inflated(text).getReader(); ; ) {
    const {done, value} = await pieces.read();
    if (done) return;
    take(value);
  }
}
