"use strict";
// What lanes of phases say, without a document: tested by node. A lane has phases, a list of names, and items with from, to and parts: pairs of a phase's number and the nanoseconds that belong to it.

// phaseParts divides a stretch of the picture among the phases that it belongs to; one that took no time is there as well.
function phaseParts(parts, left, right, paint) {
  const sum = parts.reduce((total, part) => total + Math.max(part[1], 1), 0);
  let from = left;
  for (const [phase, ns] of parts) {
    const to = from + ((right - left) * Math.max(ns, 1)) / sum;
    paint(phase, from, to);
    from = to;
  }
}

// phasesBetween names the phases that a stretch of time touches, in their order. Items are in the order of time and do not overlap.
function phasesBetween(lane, from, to) {
  let low = 0, high = lane.items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.items[middle].to < from) low = middle + 1;
    else high = middle;
  }
  const touched = new Set();
  for (let i = low; i < lane.items.length && lane.items[i].from <= to && touched.size < lane.phases.length; i++) for (const [phase] of lane.items[i].parts) touched.add(lane.phases[phase]);
  return [...touched];
}

if (typeof module !== "undefined") module.exports = {phaseParts, phasesBetween};
