(function (MT) {
  "use strict";
  const svg = document.currentScript.closest("svg");
  const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  const info = svg.querySelector(".info");
  const hint = "click a box to look closer, Esc to go back";
  const boxes = Array.from(svg.querySelectorAll(".boxes > g"), function (g) {
    const rect = g.querySelector("rect");
    return {
      g: g, rect: rect, text: g.querySelector("text"), y: +rect.getAttribute("y"),
      from: +g.dataset.o, size: +g.dataset.b, name: MT.names[+g.dataset.n],
      about: g.querySelector("title").textContent.split("\n").join("  \u00b7  "),
    };
  });
  let base = boxes[0];
  let said = hint;

  function fit(name, size, width) {
    const room = Math.floor((width - MT.pad) / MT.char);
    for (const text of name) {
      const both = text + " \u00b7 " + size;
      if (columns(both) <= room) return both;
      if (columns(text) <= room) return text;
    }
    const last = name[name.length - 1];
    if (room < 4) return "";
    let text = "", used = 0;
    for (const c of last) {
      used += columns(c);
      if (used > room - 1) break;
      text += c;
    }
    return text + "\u2026";
  }

  function columns(text) {
    let n = 0;
    for (const c of text) n += c.codePointAt(0) >= 0x1100 ? 2 : 1;
    return n;
  }

  function draw() {
    const end = base.from + base.size;
    for (const b of boxes) {
      const above = b.y < base.y;
      const shown = above ? b.from <= base.from && b.from + b.size >= end : b.from >= base.from && b.from + b.size <= end;
      const x = above ? 0 : (b.from - base.from) / base.size * MT.width;
      const width = above ? MT.width : b.size / base.size * MT.width;
      if (!shown || width < MT.least) {
        b.g.style.display = "none";
        continue;
      }
      b.g.style.display = "";
      b.g.classList.toggle("above", above);
      b.rect.setAttribute("x", MT.left + x);
      b.rect.setAttribute("width", Math.max(width - MT.gap, MT.least));
      const label = fit(b.name, b.g.dataset.s, width);
      if (!b.text) {
        if (!label) continue;
        b.text = document.createElementNS(SVG, "text");
        b.text.setAttribute("y", b.y + MT.base);
        b.g.appendChild(b.text);
      }
      b.text.setAttribute("x", MT.left + x + MT.pad / 2);
      b.text.textContent = label;
    }
  }

  function zoom(b) {
    base = b;
    draw();
  }

  function search(pattern) {
    let wanted = null;
    if (pattern) {
      try { wanted = new RegExp(pattern, "i"); } catch (e) { wanted = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"); }
    }
    let sum = 0, end = 0, count = 0;
    for (const b of boxes) {
      const found = wanted !== null && b !== boxes[0] && wanted.test(b.name[0]);
      b.g.classList.toggle("found", found);
      if (!found) continue;
      count++;
      if (b.from >= end) { // boxes come in the order of a walk: what lies below a match starts before its end
        sum += b.size;
        end = b.from + b.size;
      }
    }
    said = wanted === null ? hint : count + " boxes match, " + (100 * sum / boxes[0].size).toFixed(1) + " % of all";
    info.textContent = said;
  }

  for (const b of boxes) {
    b.g.classList.add("live");
    b.g.addEventListener("click", function () { zoom(b); });
    b.g.addEventListener("mouseenter", function () { info.textContent = b.about; });
    b.g.addEventListener("mouseleave", function () { info.textContent = said; });
  }
  const holder = document.createElementNS(SVG, "foreignObject");
  for (const [name, value] of Object.entries(MT.search)) holder.setAttribute(name, value);
  const input = document.createElementNS(HTML, "input");
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "search: a word or a regular expression");
  input.addEventListener("input", function () { search(input.value); });
  holder.appendChild(input);
  svg.appendChild(holder);
  window.addEventListener("keydown", function (e) {
    if (e.key === "Escape" && boxes.length) {
      input.value = "";
      search("");
      zoom(boxes[0]);
    }
  });
  info.textContent = said;
})
