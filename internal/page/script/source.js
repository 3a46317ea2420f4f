"use strict";
// Where answers about moments come from: the blocks on the page, or the program that serves it, which holds the blocks of a trace that is too large for a page. Both answer with the same values, later.

// blockName is what tables call a block of an owner: its innermost line, and its module.
function blockName(facts, owner) {
  const place = Math.max(facts.by.indexOf("inner"), 0), module = Math.max(facts.by.indexOf("each module"), facts.by.indexOf("module")), keys = facts.owners[owner].k;
  const name = facts.keys[place][keys[place]];
  return module < 0 || !/^[A-Za-z_]/.test(facts.keys[module][keys[module]]) ? name : name + "  ·  " + facts.keys[module][keys[module]];
}

// localSource answers from the blocks on the page. open gives the section of places, which is unpacked when it is first asked for.
function localSource(facts, model, open) {
  const groupOf = (by) => facts.owners.map((owner) => owner.k[by]);
  let peaks = null, places = null;
  return {
    events: model.events,
    crowded: crowded(model, facts.to - facts.from),
    async columns({from, to, count, byEvents, layers}) {
      if (!isLayered(model, layers.layerOf, layers.count)) await sliced(layering(model, layers.layerOf, layers.count));
      return columns(model, from, to, count, layers.layerOf, layers.count, byEvents);
    },
    async moment({event, edge}) {
      const answer = {event, time: timeAt(model, event), live: liveAt(model, event), since: null, before: null, edgeTime: 0, lives: lifetimes(model, edge === null ? -1 : edge, event)};
      if (edge !== null) {
        answer.before = liveAt(model, edge);
        answer.since = bornSince(model, edge, event);
        answer.edgeTime = edge < 0 ? 0 : timeAt(model, edge);
      }
      return answer;
    },
    async largest({event, limit, find, layers, layer = null}) {
      const time = (e) => (e < model.events ? timeAt(model, e) : null), wanted = facts.owners.map((_, owner) => (layer === null || layers.layerOf[owner] === layer) && blockName(facts, owner).toLowerCase().includes(find));
      return largest(model, event, limit, (b) => wanted[model.owner[b]]).map((b) => ({size: sizeAt(model, b), owner: model.owner[b], since: time(model.born[b]), until: time(model.died[b])}));
    },
    async weights({by}) {
      const weight = new Float64Array(facts.keys[by].length);
      await sliced(weighing(model, weight, groupOf(by), facts.end));
      return weight;
    },
    async eventAt(position, byEvents) {
      return eventAt(model, position, byEvents);
    },
    async highest(from, to, byEvents) {
      return highest(model, eventAt(model, from, byEvents), eventAt(model, to, byEvents));
    },
    async summit(event, direction) {
      peaks = peaks || summits(model);
      const next = direction < 0 ? peaks.filter((peak) => peak < event).pop() : peaks.find((peak) => peak > event);
      return next === undefined ? -1 : next;
    },
    async position(event, byEvents) {
      return byEvents ? event : timeAt(model, event);
    },
    async segments(event) {
      if (!facts.places) return null;
      places = places || unpackPlaces(await open("places"), facts.blocks, facts.places);
      const answer = segmentsAt(model, places, facts.segments, event);
      for (const s of answer.segments) for (const b of s.blocks) b.owner = model.owner[b.block];
      return answer;
    },
  };
}

// remoteSource asks the server. ask gets a question's name and values, and gives what the answer's JSON says.
function remoteSource(facts, ask) {
  const held = (list) => {
    const live = {bytes: new Float64Array(facts.owners.length), count: new Uint32Array(facts.owners.length), total: 0};
    for (const [owner, bytes, count] of list) {
      live.bytes[owner] = bytes;
      live.count[owner] = count;
      live.total += bytes;
    }
    return live;
  };
  const number = async (name, values) => (await ask(name, values)).value;
  return {
    events: facts.events,
    crowded: facts.crowded,
    columns: ({from, to, count, byEvents, layers}) => ask("columns", {from, to, count, axis: byEvents ? "events" : "time", by: layers.by, shown: layers.shown.join(",")}),
    async moment({event, edge}) {
      const answer = await ask("moment", edge === null ? {event} : {event, edge});
      return {event, time: answer.time, live: held(answer.live), before: edge === null ? null : held(answer.before), since: edge === null ? null : held(answer.since), edgeTime: answer.edge_time, lives: answer.lives};
    },
    largest: ({event, limit, find, layers, layer = null}) => ask("largest", layer === null ? {event, limit, find} : {event, limit, find, layer, by: layers.by, shown: layers.shown.join(",")}),
    weights: ({by}) => ask("weights", {by}),
    eventAt: (position, byEvents) => number("event", {position, axis: byEvents ? "events" : "time"}),
    highest: (from, to, byEvents) => number("highest", {from, to, axis: byEvents ? "events" : "time"}),
    summit: (event, direction) => number("summit", {event, direction}),
    position: async (event, byEvents) => (byEvents ? event : number("time", {event})),
    async segments(event) {
      return facts.segmented ? ask("segments", {event}) : null;
    },
  };
}

if (typeof module !== "undefined") {
  Object.assign(globalThis, require("./model.js"), require("./unpack.js"), require("./segments.js"));
  module.exports = {localSource, remoteSource};
}
