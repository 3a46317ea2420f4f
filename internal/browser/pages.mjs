// Opens pages in a real browser and does with them what people do. Called by browser_test.go with a file of JSON: what to open, and what must be seen. Prints a line for each thing that is wrong, and the layout that it found.
import {createRequire} from "node:module";
import {readFileSync, writeFileSync} from "node:fs";

const plan = JSON.parse(readFileSync(process.argv[2], "utf8")), need = createRequire(plan.modules + "/x.js");
const {chromium} = need("playwright-core"), axe = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({executablePath: plan.chromium, args: ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text"]});
const wrong = (where, what) => console.log("WRONG " + where + ": " + what);
const plain = (value) => value === null || typeof value !== "object" || Array.isArray(value);
const same = (where, got, want) => !plain(got) && !plain(want) ? [...new Set([...Object.keys(got), ...Object.keys(want)])].forEach((key) => same(where + ", " + key, got[key], want[key])) : JSON.stringify(got) === JSON.stringify(want) || wrong(where, JSON.stringify(got).slice(0, 500) + ", want " + JSON.stringify(want).slice(0, 500));

// open opens a page, and notes what it asks for and complains of.
async function open(where, url, options = {}) {
  const context = await browser.newContext({viewport: {width: 1024, height: 900}, colorScheme: "light", deviceScaleFactor: 1, ...options});
  await context.route("**/*", (route) => {
    const asked = route.request().url(), own = asked.split("#")[0].startsWith(url.split("#")[0]);
    if (!own) wrong(where, "asks for " + asked);
    return own ? route.continue() : route.abort();
  });
  const page = await context.newPage();
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && !page.mayComplain && wrong(where, "console: " + message.text()));
  page.on("pageerror", (error) => wrong(where, "error: " + error.message));
  page.on("dialog", (dialog) => (wrong(where, "dialog: " + dialog.message()), dialog.dismiss()));
  await page.goto(url);
  if (options.javaScriptEnabled !== false) await page.waitForSelector('html[data-ready="yes"]', {timeout: 60000});
  return page;
}

const text = (page, id) => page.locator("#" + id).evaluate((element) => element.textContent);
const cells = (page, id) => page.locator("#" + id + " tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent).filter(Boolean)));
const settled = (page, what, arg) => page.waitForFunction(what, arg, {timeout: 60000});

// layout is where the parts of a page lie and what the headings say, and of the picture which layer is where.
async function layout(page) {
  return page.evaluate(() => {
    const round = Math.round, parts = [];
    for (const element of document.querySelectorAll("h1, h2, canvas, svg.both, table, #stacks, details, select, button[id], input[type=search]")) {
      const box = element.getBoundingClientRect();
      if (!box.width || !box.height || element.closest("details:not([open]) > :not(summary)")) continue;
      parts.push({what: element.tagName.toLowerCase() + (element.id ? "#" + element.id : ""), x: round(box.x), y: round(box.y + scrollY), w: round(box.width), h: round(box.height), text: /^h\d$/i.test(element.tagName) ? element.textContent.trim() : ""});
    }
    const canvas = document.getElementById("picture"), grid = [];
    if (canvas && canvas.width) {
      const style = getComputedStyle(document.documentElement), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const colours = [..."0123456789ab"].map((name, n) => [name, "--c" + n]).concat([["r", "--rest"]]).map(([name, variable]) => [name, style.getPropertyValue(variable).trim().match(/\w\w/g).map((part) => parseInt(part, 16))]);
      for (let row = 1; row < 8; row++) {
        let line = "";
        for (let column = 1; column < 24; column++) {
          const at = 4 * (Math.round(26 + ((canvas.height - 90) * row) / 8) * canvas.width + Math.round(74 + ((canvas.width - 88) * column) / 24)), [r, gr, b, a] = pixels.slice(at, at + 4);
          const near = colours.findIndex(([, c]) => a > 200 && Math.abs(c[0] - r) + Math.abs(c[1] - gr) + Math.abs(c[2] - b) < 24);
          line += near < 0 ? "." : colours[near][0];
        }
        grid.push(line);
      }
    }
    return {overflow: document.documentElement.scrollWidth > innerWidth, ground: getComputedStyle(document.documentElement).backgroundColor, parts, grid};
  });
}

async function layouts() {
  const found = {};
  for (const {name, url} of plan.pages)
    for (const width of [480, 1024, 1600])
      for (const colorScheme of ["light", "dark"]) {
        const where = name + " " + width + " " + colorScheme, page = await open(where, url, {viewport: {width, height: 900}, colorScheme});
        found[where] = await layout(page);
        if (found[where].overflow) wrong(where, "is wider than the window");
        const file = "/" + where.replaceAll(" ", "-") + ".png";
        await page.screenshot({path: plan.tops + file, clip: {x: 0, y: 0, width, height: 1440}, fullPage: true});
        if (width !== 480) await accessible(where, page);
        if (plan.shots) await page.screenshot({path: plan.shots + file, fullPage: true});
        await page.context().close();
      }
  writeFileSync(plan.layout, JSON.stringify(found));
}

async function accessible(where, page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = true)));
  const session = await page.context().newCDPSession(page); // the page's own policy forbids a foreign script
  await session.send("Runtime.evaluate", {expression: axe});
  const {violations} = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
  for (const v of violations) wrong(where, "axe " + v.id + ": " + v.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + (node.any[0] || {message: ""}).message).join("; "));
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => (part.open = false)));
}

// tables are all that a page shows of a moment.
const tables = async (page) => Object.fromEntries(await Promise.all(["when", "whenmore", "owners", "blocks", "cross", "sincewords", "since", "lives", "mapwords", "maptwin", "twin", "stacktwin"].map(async (id) => [id, await text(page, id)])));

async function brush(page, from, to) {
  const box = await page.locator("#picture").boundingBox(), before = await text(page, "twin");
  await page.mouse.move(box.x + box.width * from, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 90, {steps: 4});
  await page.mouse.up();
  await settled(page, (old) => document.getElementById("twin").textContent !== old, before);
}

// walk does what people do, and returns what they saw on the way.
async function walk(page) {
  const seen = {begin: await tables(page)}, picture = page.locator("#picture");
  const step = async (name, act, id = "when") => {
    const before = await text(page, id);
    await act();
    await settled(page, ([id, old]) => document.getElementById(id).textContent !== old, [id, before]);
    seen[name] = await tables(page);
  };
  await brush(page, 0.4, 0.7);
  seen.brush = await tables(page);
  await step("left", () => picture.press("ArrowLeft"));
  await step("far", () => picture.press("Shift+ArrowRight"));
  await step("summit", () => picture.press("PageUp"));
  await step("end", () => picture.press("End"));
  await step("peak", () => picture.press("Home"));
  await step("module", () => page.locator("#by").selectOption("module"), "owners");
  await page.keyboard.press("/");
  same("search", await page.evaluate(() => document.activeElement.id), "find");
  await step("find", () => page.keyboard.insertText("fc2"), "owners");
  await step("found", () => page.locator("#find").fill(""), "owners");
  await step("since", () => page.locator("#since-moment").selectOption({index: 1}), "sincewords");
  await step("marks", () => page.locator("#until-moment").selectOption({index: 4}), "sincewords");
  return seen;
}

// select clicks at bands of the picture, and at their names.
async function select(page) {
  const picture = page.locator("#picture"), height = (await picture.boundingBox()).height;
  await picture.click({position: {x: 500, y: height - 150}});
  await settled(page, () => document.getElementById("picked").textContent.startsWith("Selected: "));
  const said = await text(page, "picked"), [, size, layer, place] = said.match(/^Selected: (.*?) of (.*?), allocated at (.*?), from /) || wrong("selected", said) || [];
  same("the selected block's row", (await page.locator("#blocks tr.picked").textContent()).includes(place) && (await page.locator("#blocks tr.picked").textContent()).startsWith(size), true);
  same("the selected layer", [await text(page, "blockswhose"), await page.locator('#legend button[aria-pressed="true"]').allTextContents()], ["of " + layer, [layer]]);
  await page.locator('#legend button[aria-pressed="false"]').first().click();
  await settled(page, () => document.getElementById("picked").textContent === "");
  await picture.press("Escape");
  await settled(page, () => document.getElementById("blockswhose").textContent === "");
}

async function run() {
  const {url, expect} = plan.run, page = await open("run", url);
  same("the peak by category", await cells(page, "owners"), expect.owners);
  same("the map", (await text(page, "mapwords")).startsWith(expect.map), true);
  same("modules by category add up", (await cells(page, "cross")).at(-1)[1], expect.peak);
  const seen = await walk(page);
  same("the end", seen.end.whenmore.startsWith(expect.end), true);
  same("what is found", (await seen.find.owners.match(/fc\d/g)) || [], ["fc2"]);
  const address = page.url(), again = await open("fragment", address);
  same("the address", await tables(again), seen.marks);
  await again.context().close();
  await page.locator("#since-moment").selectOption({index: 5});
  await settled(page, () => document.getElementById("reading").textContent.startsWith("The second moment must"));
  await page.locator("#all").click();
  await settled(page, () => document.getElementById("sincewords").textContent === "");
  await page.locator("#map").hover({position: {x: 90, y: 8}});
  same("what lies under the pointer", /^0x7f[0-9a-f]+ on device 0: 1\.00 MiB of /.test(await text(page, "mapreading")), true);
  await select(page);
  await page.locator("#theme").click();
  same("theme", await page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).backgroundColor]), ["dark", "rgb(20, 23, 27)"]);
  await page.locator("#stacks button").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  same("stacks by keys", (await page.locator("#stacks button").first().textContent()).startsWith("◂ all"), true);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
  await page.locator("#copy").click();
  await settled(page, () => document.getElementById("copy").textContent === "Copied");
  same("the command", /^memtrace report --at [\d.]+s --by module run\.bin$/.test(await page.evaluate(() => navigator.clipboard.readText())), true);
  await page.context().close();
  return seen;
}

async function withoutScripts() {
  const page = await open("without scripts", plan.run.url, {javaScriptEnabled: false});
  same("without scripts", await page.evaluate(() => 1).catch(() => "off"), 1);
  same("heading", (await page.locator("h1").textContent()).includes(plan.run.expect.peak), true);
  same("outline", await page.locator("#timeline svg").isVisible(), true);
  same("canvas", await page.locator("#picture").isVisible(), false);
  same("owners", await page.locator(".static table").first().isVisible(), true);
  await page.context().close();
}

async function hostile() {
  const page = await open("hostile", plan.hostile);
  same("elements of a name", await page.locator("img, iframe, object").count(), 0);
  same("the name is shown", (await page.locator("body").innerText()).includes("<img src=x"), true);
  await page.context().close();
}

async function difference() {
  const page = await open("diff", plan.diff.url), states = () => page.locator("section[data-by]:not([hidden]) tbody tr:not([hidden])").evaluateAll((rows) => rows.map((row) => row.cells[0].firstChild.textContent.trim() + " " + row.dataset.state));
  same("the sentence", await page.locator("h1").textContent(), plan.diff.sentence);
  await page.locator("#by").selectOption({label: "module"});
  same("states", (await states()).sort(), plan.diff.states);
  await page.locator("#state-NEW").uncheck();
  same("without new", (await states()).sort(), plan.diff.states.filter((row) => !row.endsWith(" NEW")));
  await page.locator("#find").fill("fc3");
  same("found", (await states()).every((row) => row.includes("fc3")), true);
  const again = await open("diff's address", page.url());
  same("kept", await again.locator("#find").inputValue(), "fc3");
  await again.context().close();
  await page.context().close();
}

// ranks goes to the rank that differs, by keys, and looks at it in all ways that there are.
async function ranks() {
  const page = await open("ranks", plan.ranks), canvas = page.locator("#heat"), reading = () => text(page, "reading");
  await canvas.press("PageDown");
  same("the rank that differs", [(await reading()).startsWith("rank 3, iteration "), await text(page, "command"), await page.locator("tr.picked a").textContent()], [true, "memtrace report rank3.bin", "rank 3"]);
  same("its link", await page.locator("tr.picked a").getAttribute("href"), "rank3.bin");
  await canvas.press("ArrowUp");
  same("the row above", (await reading()).startsWith("rank 2, iteration "), true);
  for (const colour of await page.locator("#colour option").evaluateAll((list) => list.map((option) => option.value)))
    for (const order of ["group", "rank"]) {
      await page.locator("#colour").selectOption(colour);
      await page.locator("#order").selectOption(order);
      await page.locator("#kinds button").last().click();
      same("the same row", (await reading()).startsWith("rank 2, iteration "), true);
    }
  await canvas.hover({position: {x: 150, y: 12}});
  same("what is under the pointer", (await reading()).startsWith("rank 0, iteration "), true);
  await accessible("ranks", page);
  await canvas.press("Escape");
  same("nothing is selected", [await reading(), await page.locator("#picked").isVisible(), await page.locator("tr.picked").count()], ["", false, 0]);
  await page.context().close();
  const plain = await open("ranks without scripts", plan.ranks, {javaScriptEnabled: false});
  same("without scripts", [await plain.locator("#heat").isVisible(), await plain.locator("table.ranks a").count()], [false, 5]);
  await plain.context().close();
}

// served compares a page whose blocks lie with the server with one that has them, and lets a run go on.
async function served(seen) {
  const page = await open("served", plan.served);
  same("served", await walk(page), seen);
  await page.locator("#all").click();
  await settled(page, () => document.getElementById("sincewords").textContent === "");
  await select(page);
  await page.context().close();
  const live = await open("live", plan.live.url);
  same("live", (await text(live, "live")).startsWith("live"), true);
  await live.locator("#by").selectOption("module");
  const before = await text(live, "twin");
  await fetch(plan.live.grow);
  await settled(live, (old) => document.getElementById("twin").textContent !== old, before);
  same("the division stays", await live.locator("#by").inputValue(), "module");
  await fetch(plan.live.grow);
  await settled(live, () => document.getElementById("live").textContent === "the process has ended");
  live.mayComplain = true;
  await live.context().close();
  const index = await open("index", plan.index, {javaScriptEnabled: false});
  same("index", await index.locator("tbody tr").count(), 2);
  await index.context().close();
}

await layouts();
const seen = await run();
await withoutScripts();
await hostile();
await difference();
await ranks();
await served(seen);
await browser.close();
