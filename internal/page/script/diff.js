"use strict";
// The page of a difference: which table, which rows of it, and what the address says of that.

const stateWords = ["NEW", "REMOVED", "GREW", "SHRANK", "UNCHANGED"];

function showRows() {
  const by = element("by").value, find = element("find").value.toLowerCase(), wanted = new Set(stateWords.filter((word) => element("state-" + word).checked));
  let shown = 0;
  for (const part of document.querySelectorAll("section[data-by]")) {
    part.hidden = part.dataset.by !== by;
    for (const row of part.querySelectorAll("tbody tr")) {
      row.hidden = !wanted.has(row.dataset.state) || !row.querySelector(".name").textContent.toLowerCase().includes(find);
      if (!row.hidden && !part.hidden) shown++;
    }
  }
  element("shown").textContent = shown + (shown === 1 ? " row" : " rows");
  writeAddress(by, find, wanted);
}

function writeAddress(by, find, wanted) {
  const said = new URLSearchParams();
  if (element("by").selectedIndex !== 0) said.set("by", by);
  if (find) said.set("find", element("find").value);
  if (!sameWords(wanted, stateWords.slice(0, 4))) said.set("states", [...wanted].join(",").toLowerCase());
  const text = said.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

const sameWords = (set, list) => set.size === list.length && list.every((word) => set.has(word));

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1)), by = element("by");
  const at = [...by.options].findIndex((option) => option.value === given.get("by"));
  if (at >= 0) by.selectedIndex = at;
  element("find").value = given.get("find") || "";
  const states = given.has("states") ? given.get("states").toUpperCase().split(",") : stateWords.slice(0, 4);
  for (const word of stateWords) element("state-" + word).checked = states.includes(word);
}

function beginDiff() {
  themes(() => {});
  document.documentElement.classList.add("scripted");
  for (const part of document.querySelectorAll("section[data-by]")) {
    const option = make("option", part.dataset.title);
    option.value = part.dataset.by;
    element("by").append(option);
  }
  readAddress();
  for (const id of ["by", "find", ...stateWords.map((word) => "state-" + word)]) element(id).addEventListener("input", showRows);
  element("copy").addEventListener("click", () => {
    const name = document.querySelector('section[data-by="' + CSS.escape(element("by").value) + '"]');
    copied(element("copy"), (name ? "memtrace diff --by " + name.dataset.grouping : "memtrace diff") + " " + element("copy").dataset.traces);
  });
  document.addEventListener("keydown", (key) => {
    if (key.key !== "/" || document.activeElement === element("find")) return;
    key.preventDefault();
    element("find").focus();
  });
  showRows();
  document.documentElement.dataset.ready = "yes";
}

beginDiff();
