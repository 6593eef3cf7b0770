// SPDX-License-Identifier: Apache-2.0
// One session of a person with the page. Every step states a fact; the first that does not hold ends the test.
import assert from "node:assert/strict";
import {readFileSync, writeFileSync, mkdirSync} from "node:fs";
import {join} from "node:path";
import {gzipSync} from "node:zlib";
import {createRequire} from "node:module";
import {chromium} from "playwright-core";
import {startServer} from "./server.mjs";

const [, , program, work, executablePath, shots] = process.argv;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], timeout: 30000});
let server = await startServer(program, join(work, "studies.db"));
const messages = [], sizes = new Map();
let expectFailures = false;

async function open(options = {}, path = "/") {
  const context = await browser.newContext({viewport: {width: 1280, height: 800}, colorScheme: "light", ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  // A refused or unanswered request is a console message of the browser's own; the steps that cause one say so.
  page.on("console", m => { if (!(expectFailures && m.type() === "error" && /Failed to load resource/.test(m.text()))) messages.push(`${m.type()}: ${m.text()}`); });
  page.on("response", async r => { if (r.status() >= 500) messages.push(`${r.request().method()} ${r.url()}: ${r.status()} ${(await r.text().catch(() => "")).slice(0, 300)}`); });
  page.on("pageerror", e => messages.push("exception: " + e.stack));
  page.on("request", r => { if (!r.url().startsWith(server.url) && !/^(data|blob):/.test(r.url())) messages.push("request to " + r.url()); });
  page.on("response", async r => { if (new URL(r.url()).pathname.startsWith("/assets/") || new URL(r.url()).pathname === "/") sizes.set(r.url(), gzipSync(await r.body().catch(() => Buffer.from(""))).length); });
  await page.goto(server.url + path);
  return page;
}
async function step(fact, check) {
  try {
    await check();
    assert.deepEqual(messages, [], "messages of the browser");
    console.log("ok      " + fact);
  } catch (error) {
    console.error("FAILED  " + fact + "\n" + error.stack);
    if (shots) for (const c of browser.contexts()) for (const p of c.pages()) await p.screenshot({path: join(shots, "failed.png")}).catch(() => {});
    await server.kill().catch(() => {});
    await browser.close();
    process.exit(1);
  }
}
const settled = page => page.waitForFunction(() => document.querySelector("#results h1")?.textContent && !document.querySelector("#results .stale, #results [aria-busy=true]") && document.querySelector("#results svg"));
const verdict = page => page.locator("#results h1").first().textContent();
const changedVerdict = async (page, action) => { const before = await verdict(page); await action(); await page.waitForFunction(b => document.querySelector("#results h1").textContent !== b, before); await settled(page); };
const range = (page, key, to) => page.evaluate(([k, v]) => { const n = document.getElementById("f-" + k); n.value = v; n.dispatchEvent(new Event("input", {bubbles: true})); n.dispatchEvent(new Event("change", {bubbles: true})); }, [key, to]);
async function accessible(page, what) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => axe.run(document, {resultTypes: ["violations"]}));
  assert.deepEqual(violations.map(v => `${what}: ${v.id}: ${v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + n.failureSummary).join(" | ")}`), []);
}
async function picture(page, name) {
  if (!shots) return;
  mkdirSync(shots, {recursive: true});
  await page.screenshot({path: join(shots, name + ".png")});
}

const page = await open();
await step("the page answers by itself: a verdict, the ladder first", async () => {
  await settled(page);
  assert.match(await verdict(page), /legal strategies/);
  assert.equal(await page.locator("#results section h2").first().textContent(), "From peak to useful work");
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`        first paint ${paint.toFixed(0)} ms`);
});
await step("strategies, memory against capacity and the wiring are drawn", async () => {
  for (const title of ["Strategies", "Memory", "Wiring", "Bill of the step", "Choke points"]) assert.equal(await page.locator("#results h2", {hasText: new RegExp(`^${title}$`)}).count(), 1, title);
  assert.ok(await page.locator("circle[data-strategy]").count() > 20);
});
await step("strategies can be read in money as well as in time", async () => {
  await page.waitForFunction(() => [...document.querySelectorAll("[data-part=strategies] svg.draw text")].some(n => /billion tokens/.test(n.textContent)));
  assert.match(await page.locator("circle[data-strategy]").first().getAttribute("data-tip"), /\$[0-9,.]+ per billion tokens/);
});
await step("pictures are saved as SVG and as PNG", async () => {
  const shot = page.locator(".shot").first();
  const saved = async kind => {
    await shot.hover();
    const [download] = await Promise.all([page.waitForEvent("download"), shot.locator(`[data-save=${kind}]`).click()]);
    const file = join(work, "picture." + kind);
    await download.saveAs(file);
    assert.equal(download.suggestedFilename(), "from-peak-to-useful-work." + kind);
    return readFileSync(file);
  };
  const svg = (await saved("svg")).toString(), png = await saved("png");
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.ok(!/var\(--|class=|data-tip/.test(svg), "stands alone");
  const box = await shot.locator("svg").evaluate(n => [n.viewBox.baseVal.width, n.viewBox.baseVal.height]);
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], box.map(v => Math.round(2 * v)));
  const colours = await page.evaluate(async url => {
    const image = new Image(), canvas = document.createElement("canvas");
    image.src = url;
    await image.decode();
    canvas.width = image.width; canvas.height = image.height;
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return new Set(new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer)).size;
  }, "data:image/png;base64," + png.toString("base64"));
  assert.ok(colours > 20, colours + " colours");
  await page.mouse.move(0, 0);
});
await step("a slider that moves repaints the result; time from its move to the repaint", async () => {
  const slider = page.locator("#f-network"), box = await slider.boundingBox();
  const shown = page.locator(".strip b").first(), before = await shown.textContent();
  const at = share => [box.x + 8 + share * (box.width - 16), box.y + box.height / 2];
  await page.mouse.move(...at(7 / 16));
  await page.mouse.down();
  for (let i = 0; i < 120; ++i) { await page.mouse.move(...at((i % 32 < 16 ? i % 32 : 32 - i % 32) / 16)); await page.waitForTimeout(15); }
  await page.mouse.move(...at(0));
  await page.mouse.up();
  await settled(page);
  assert.equal(await page.locator("#o-network").textContent(), "\u00d70.125");
  assert.notEqual(await shown.textContent(), before);
  const times = (await page.evaluate(() => performance.getEntriesByName("slider to repaint").map(e => e.duration))).sort((a, b) => a - b);
  assert.ok(times.length > 5, `${times.length} repaints`);
  console.log(`        1,024 accelerators, ${times.length} repaints: median ${times[times.length >> 1].toFixed(1)} ms, 90th percentile ${times[Math.floor(.9 * times.length)].toFixed(1)} ms`);
  await page.locator("#plain").click();
  await settled(page);
});
await step("sliders move by keys and say their value", async () => {
  await page.locator("#f-latency").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#f-latency").getAttribute("aria-valuetext"), "\u00d71.25");
  await page.keyboard.press("ArrowLeft");
  await settled(page);
});
await step("an exact number of accelerators is taken as it is", async () => {
  await changedVerdict(page, async () => { await page.locator("#x-gpus").fill("512"); await page.keyboard.press("Enter"); });
  assert.match(await page.locator(".facts").first().textContent(), /512 x h100/);
});
await step("another model and cluster", async () => {
  await changedVerdict(page, () => page.locator("#f-model").selectOption("llama-3-8b"));
  await changedVerdict(page, () => page.locator("#f-cluster").selectOption("dgx-a100"));
  assert.match(await page.locator(".facts").first().textContent(), /llama-3-8b[^]*a100/);
});
await step("a strategy of the table becomes the strategy", async () => {
  await changedVerdict(page, () => page.locator("button[data-strategy]").nth(3).click());
  assert.match(await page.locator("#f-strategy").inputValue(), /microbatch=/);
  await page.locator("#best").click();
  await settled(page);
});
await step("what cannot be is refused with what helps, and mended", async () => {
  expectFailures = true;
  await page.locator("#f-strategy").fill("tensor=7 microbatch=1");
  await page.keyboard.press("Tab");
  await page.locator(".refusal").waitFor();
  assert.match(await page.locator(".refusal").textContent(), /tensor/);
  await page.locator("#f-strategy").fill("");
  await page.keyboard.press("Tab");
  await page.locator(".refusal").waitFor({state: "detached"});
  await settled(page);
  expectFailures = false;
});
await step("two scenarios stand side by side", async () => {
  await page.locator("#compare-button").click();
  await page.waitForFunction(() => document.querySelectorAll("#results .pane h1").length === 2 && [...document.querySelectorAll("#results .pane h1")].every(h => h.textContent));
  await range(page, "nvlink", 11);
  await page.locator(".compare li b", {hasText: "\u00d72"}).waitFor();
  await page.waitForFunction(() => /%/.test(document.querySelector(".compare tbody tr td:last-child").textContent));
  await settled(page);
  await accessible(page, "compare");
  await picture(page, "compare");
});
let link;
await step("the link brings both back in another browser", async () => {
  await page.locator("#share").click();
  link = await page.locator("#share-link").inputValue();
  await accessible(page, "share");
  await page.keyboard.press("Escape");
  const other = await open({}, new URL(link).hash ? "/" + new URL(link).hash : "/");
  await other.locator(".compare li b", {hasText: "\u00d72"}).waitFor();
  assert.equal(await other.locator("#f-model").inputValue(), "llama-3-8b");
  await other.context().close();
});
await step("a study is saved, found after a reload, opened and deleted", async () => {
  await page.locator("#studies").click();
  await page.locator("#study-name").fill("links twice as fast");
  await page.keyboard.press("Enter");
  await page.locator(".studies .open", {hasText: "links twice as fast"}).waitFor();
  await accessible(page, "studies");
  await page.keyboard.press("Escape");
  await page.locator("#compare-button").click();
  await page.reload();
  await settled(page);
  assert.equal(await page.locator(".compare").count(), 0);
  await page.locator("#studies").click();
  await page.locator(".studies .open").first().click();
  await page.locator(".compare").waitFor();
  await page.locator("#studies").click();
  const gone = page.locator(".studies .gone").first();
  await gone.click();
  await gone.click();
  await page.locator(".studies .dim").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#compare-button").click();
});
await step("a change and its sizes are answered", async () => {
  await page.locator("[data-tab=whatif]").click();
  await settled(page);
  await changedVerdict(page, async () => { await page.locator("#w-change").fill("nic=x2"); await page.keyboard.press("Enter"); });
  await page.locator("#w-scale").fill("64..512");
  await page.keyboard.press("Tab");
  await page.locator("h2", {hasText: /^Scaling$/}).waitFor();
  await accessible(page, "what if");
  await picture(page, "whatif");
});
await step("wiring: a dropped topology is drawn, broken XML is refused with its place", async () => {
  await page.locator("[data-tab=wiring]").click();
  await settled(page);
  await accessible(page, "wiring");
  const matrix = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\t0\nGPU1\tSYS\t X \t8-15\t1\n";
  await page.locator("#pick").setInputFiles({name: "topo.txt", mimeType: "text/plain", buffer: Buffer.from(matrix)});
  await page.locator("h1", {hasText: /./}).waitFor();
  await page.waitForFunction(() => /topo/.test(document.querySelector("#dropped").textContent));
  await settled(page);
  await page.locator("[aria-label='remove topo.txt']").click();
  expectFailures = true;
  await page.locator("#pick").setInputFiles({name: "topo.xml", mimeType: "text/xml", buffer: Buffer.from("<system version=\"1\"><cpu numaid=\"0\"")});
  await page.locator(".refusal").waitFor();
  assert.match(await page.locator(".refusal code").textContent(), /topo\.xml:1/);
  await page.locator("[aria-label='remove topo.xml']").click();
  await page.locator(".refusal").waitFor({state: "detached"});
  await settled(page);
  expectFailures = false;
});
await step("diagnosis: a trace dropped on the page is read", async () => {
  const trace = JSON.stringify({traceEvents: [{name: "k", ph: "X", ts: 0, dur: 9000, pid: 0, tid: 7, cat: "kernel"}, {name: "ncclDevKernel_AllReduce", ph: "X", ts: 9000, dur: 5000, pid: 0, tid: 7, cat: "kernel"}]});
  await page.evaluate(text => {
    const data = new DataTransfer();
    data.items.add(new File([text], "rank0.json", {type: "application/json"}));
    dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
  }, trace);
  await page.locator("[data-tab=diagnose][aria-current]").waitFor();
  await settled(page);
  await accessible(page, "diagnosis");
  await picture(page, "diagnose");
  await page.locator("[aria-label='remove rank0.json']").click();
});
await step("Russian: verdict, inputs and terms", async () => {
  await page.locator("[data-tab=plan]").click();
  await settled(page);
  await changedVerdict(page, () => page.locator("#lang").click());
  assert.match(await verdict(page), /Лучшая|шаг/);
  const english = await page.evaluate(() => [...document.querySelectorAll("#panel label, #panel legend, #tabs button, #results h2, #tools button")].map(n => n.textContent.trim()).filter(x => x && !/[а-яё]/i.test(x) && !/^(EN|\u2600|\u263e|\?)$/.test(x)));
  assert.deepEqual(english, []);
  assert.equal(await page.evaluate(() => document.documentElement.lang), "ru");
  await accessible(page, "Russian");
  await page.locator("#terms").click();
  await accessible(page, "terms");
  await page.keyboard.press("Escape");
  await page.locator("#lang").click();
  await settled(page);
});
await step("dark colours, kept over a reload", async () => {
  await page.locator("#scheme").click();
  await page.reload();
  await settled(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await accessible(page, "dark");
  await page.locator("#scheme").click();
});
await step("the keyboard alone: past the inputs to the results, terms explained on focus", async () => {
  await page.reload();
  await settled(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "skip");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.getElementById("results").contains(document.activeElement)));
  await page.locator(".strip .term").first().focus();
  assert.equal(await page.locator("#tip").isVisible(), true);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#tip").isVisible(), false);
});
await step("the server is killed: the page says so, keeps everything, and goes on when it is back", async () => {
  expectFailures = true;
  const {port} = server, before = await page.locator("#f-cluster").inputValue();
  await server.kill();
  await range(page, "batch", 10);
  await page.locator("#banner").waitFor({state: "visible"});
  const entered = await page.locator("#x-batch").inputValue();
  await accessible(page, "banner");
  server = await startServer(program, join(work, "studies.db"), port);
  await page.locator("#banner").waitFor({state: "hidden"});
  await settled(page);
  assert.equal(await page.locator("#x-batch").inputValue(), entered);
  assert.equal(await page.locator("#f-cluster").inputValue(), before);
  expectFailures = false;
});
await step("a damaged link opens the page all the same", async () => {
  const other = await open({}, "/#s=%%%not-a-link");
  await settled(other);
  await other.context().close();
});
await step("a saved page comes back from its file", async () => {
  const saved = JSON.stringify({"chokepoint-page": 1, a: {model: "gpt3-175b", gpus: 256, cluster: "dgx-a100"}});
  writeFileSync(join(work, "saved.json"), saved);
  await page.locator("#pick").setInputFiles(join(work, "saved.json"));
  await page.waitForFunction(() => document.querySelector("#f-model")?.value === "gpt3-175b");
  await settled(page);
});
for (const [name, width, height, colorScheme, lang] of [["laptop", 1280, 800, "light", "en"], ["laptop-1366", 1366, 768, "light", "ru"], ["laptop-dark-ru", 1280, 800, "dark", "ru"], ["wall", 2560, 1440, "light", "en"], ["wall-dark-ru", 2560, 1440, "dark", "ru"], ["phone", 390, 844, "light", "en"]]) {
  await step(`nothing overflows: ${name}`, async () => {
    const context = {viewport: {width, height}, colorScheme}, other = await open(context);
    if (lang === "ru") await other.locator("#lang").click();
    await settled(other);
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "scrolls sideways");
    await accessible(other, name);
    await picture(other, name);
    for (const tab of ["whatif", "wiring"]) {
      await other.locator(`[data-tab=${tab}]`).click();
      await settled(other);
      assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth), tab + " scrolls sideways");
      await accessible(other, name + " " + tab);
      await picture(other, name + "-" + tab);
      if (lang !== "ru") continue;
      // What has letters and no Russian ones is a name, a unit or a term; a source with its date is a citation.
      const english = await other.evaluate(() => [...document.querySelectorAll("#results h1, #results h2, #results h3, #results p, #results dt, #results .finding dd:first-of-type, #results th, .legend span, .tile span")].map(n => n.textContent.trim())
        .filter(x => /[a-z]{3,} [a-z]{3,}/.test(x) && !/[а-яё]/i.test(x) && !/\d{4}-\d\d-\d\d/.test(x)));
      assert.deepEqual(english, []);
    }
    await other.context().close();
  });
}
await step("the page is small", async () => {
  const total = [...sizes.values()].reduce((a, b) => a + b, 0);
  console.log(`        ${sizes.size} files, ${(total / 1024).toFixed(0)} KiB compressed`);
  assert.ok(total < 1e6);
});
await browser.close();
await server.kill();
