"use strict";
// A page that a program serves asks it what its blocks do not tell, and follows a trace that grows. A page in a file does neither.

const refreshEvery = 2000, refreshAfterFailure = 6000;

// ask asks the server that the page came from.
async function ask(name, values) {
  const answer = await fetch(location.pathname + "/" + name + "?" + new URLSearchParams({version: facts ? facts.served : "", ...values}), {cache: "no-store", credentials: "omit"});
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

// refused says that the server did not answer a question, so that what is shown is older than what was asked for.
function refused(failure) {
  const badge = element("live");
  badge.hidden = false;
  badge.className = "problem";
  badge.textContent = "not answered: " + (failure instanceof TypeError ? "memtrace serve has ended" : failure.message);
}

// follow shows whether the process still runs, and takes what is new from time to time.
function follow(first) {
  if (!first.served) return;
  let version = first.served, live = first.live;
  const badge = element("live");
  const say = (words, kind) => {
    badge.hidden = !words;
    badge.textContent = words;
    badge.className = kind;
  };
  const look = async () => {
    let pause = refreshEvery;
    try {
      const now = document.hidden ? {version, live, problem: ""} : await ask("state", {version});
      if (now.version !== version) {
        live = now.live;
        version = await takePage();
      }
      say(now.problem || (live ? "live, " + timeText(facts ? facts.end : 0) : first.live ? "the process has ended" : ""), now.problem ? "problem" : live ? "running" : "");
      if (!live && !now.problem) return;
    } catch (failure) {
      say("not refreshed: " + (failure instanceof TypeError ? "memtrace serve has ended" : failure.message), "problem");
      pause = refreshAfterFailure;
    }
    setTimeout(look, pause);
  };
  say(live ? "live, " + timeText(first.end) : "", live ? "running" : "");
  if (live) setTimeout(look, refreshEvery);
}

// takePage puts the server's present page into this one, and keeps what is looked at.
async function takePage() {
  const answer = await fetch(location.pathname, {cache: "no-store", credentials: "omit"});
  if (!answer.ok) throw new Error(answer.statusText);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = JSON.parse(page.getElementById("facts").textContent);
  if (!source && next.events) { // the first blocks have come: there was no picture before
    location.reload();
    return next.served;
  }
  for (const part of page.querySelectorAll("[data-part]")) {
    const old = document.querySelector('[data-part="' + part.dataset.part + '"]');
    const open = old && old.querySelector("details[open]");
    if (old) old.replaceWith(document.adoptNode(part));
    if (open && part.querySelector("details")) part.querySelector("details").open = true;
  }
  if (source) await takeFacts(page);
  return next.served;
}

async function takeFacts(page) {
  const atEnd = state.to >= end(), atPeak = state.event === facts.peak, name = facts.by[state.by], time = shown.now.time, edge = shown.now.edgeTime;
  ({facts, source} = await readFacts(page));
  state.by = Math.max(facts.by.indexOf(name), 0);
  if (atEnd) state.to = end();
  state.event = atPeak ? facts.peak : Math.max(0, await source.eventAt(time, false));
  if (state.edge !== null) state.edge = await source.eventAt(edge, false);
  fillMoments();
  await divide();
  legend();
  await redraw();
}
