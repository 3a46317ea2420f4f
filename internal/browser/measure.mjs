// Opens a page, and prints how long that takes and how long a brush does. Called by measure_test.go with the folder of modules, the browser and the page.
import {createRequire} from "node:module";

const [, , modules, executablePath, url] = process.argv, {chromium} = createRequire(modules + "/x.js")("playwright-core");
const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--js-flags=--expose-gc", "--enable-precise-memory-info"]});
const page = await browser.newPage({viewport: {width: 1200, height: 900}});
page.on("pageerror", (error) => console.log("error: " + error.message));
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", {timeDomain: "threadTicks"});
const worked = async () => (await session.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "TaskDuration").value; // seconds of the page's thread on a processor
const begin = performance.now();
await page.goto(url, {timeout: 120000});
await page.waitForSelector('html[data-ready="yes"]', {timeout: 120000});
const opened = performance.now() - begin, opening = await worked(), brushes = [], work = [];
const box = await page.locator("#picture").boundingBox();
for (const [from, to] of [[0.2, 0.8], [0.3, 0.5], [0.4, 0.41], [0.1, 0.9], [0.45, 0.47]]) {
  await page.locator("#all").click();
  await page.waitForTimeout(300);
  const before = await page.locator("#twin").textContent();
  await page.mouse.move(box.x + 74 + (box.width - 88) * from, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + 74 + (box.width - 88) * to, box.y + 90);
  await page.evaluate(() => {
    window.finished = new Promise((done) => new MutationObserver(() => done(performance.now())).observe(document.getElementById("twin"), {childList: true}));
    document.getElementById("picture").addEventListener("pointerup", () => (window.begun = performance.now()), {once: true, capture: true});
  });
  const idle = await worked();
  await page.mouse.up();
  brushes.push(await page.evaluate(async () => (await window.finished) - window.begun));
  work.push((await worked()) - idle);
  if (before === (await page.locator("#twin").textContent())) console.log("error: the brush changed nothing");
}
brushes.sort((a, b) => a - b);
work.sort((a, b) => a - b);
const heap = await page.evaluate(() => (gc(), performance.memory.usedJSHeapSize));
console.log(`open to first picture ${(opened / 1000).toFixed(2)} s (${opening.toFixed(2)} s on a processor), brush ${brushes[2].toFixed(0)} ms (${(1000 * work[2]).toFixed(0)} ms on a processor; longest of 5 ${brushes[4].toFixed(0)} ms and ${(1000 * work[4]).toFixed(0)} ms), heap ${(heap / 1e6).toFixed(0)} MB`);
await browser.close();
