// Uses the views as a person would, with keys and mouse, and prints what came of it; python/tests/test_view_actions.py judges it.
// Usage: node e2e/actions.mjs ADDRESS FOLDER < {"recorded": RUN, "sampled": RUN, "file": SOURCE, "half": NANOSECONDS}
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { settled, show } from "./browser.mjs";
import { perform, start } from "./harness.mjs";
import { snapshot } from "./snapshot.mjs";

const browser = await start();
const { page, context, address, parameters, changed } = browser;
const { recorded, sampled, file, half } = browser.wanted;
const folder = process.argv[3];
await context.grantPermissions(["clipboard-read", "clipboard-write"]);
const first = async () => (await snapshot(page)).tables[0]?.rows ?? [];

async function tables() {
  await show(page, address, "operators", `?run=${recorded}`);
  const all = await first();
  await page.click("th button[data-key=count]");
  const sorted = await first();
  await page.fill("section.table input[type=search]", "mm");
  await changed("filter");
  const filtered = await first();
  await page.selectOption(".bars select", "5");
  await changed("top");
  const bars = await page.locator(".barlist li").count();
  await page.reload();
  await page.waitForSelector("section.table tbody tr");
  const reloaded = { rows: await first(), order: await page.getAttribute("th:has(button[data-key=count])", "aria-sort"), bars: await page.locator(".barlist li").count() };
  await page.click("text=Copy as CSV");
  await page.waitForSelector("text=Copied");
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  return { all, sorted, filtered, bars, reloaded, csv };
}

async function modules() {
  await show(page, address, "modules", `?run=${recorded}`);
  const open_rows = (await first()).length;
  await page.focus("table[role=treegrid] tbody tr");
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector("tr[aria-expanded=false]");
  const folded = (await first()).length;
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector("tr[aria-expanded=true]");
  await page.click("text=Copy as CSV");
  await page.waitForSelector("text=Copied");
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  return { open: open_rows, folded, unfolded: (await first()).length, csv };
}

async function flame() {
  await show(page, address, "flame", `?run=${sampled}`);
  await page.fill("input[type=search]", "prepare");
  await changed("search");
  const found = await page.innerText(".tabs [role=status]");
  await page.focus("canvas");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const hover = await page.innerText(".hover");
  await page.keyboard.press("Enter");
  await changed("node");
  const { node } = await parameters();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("node="));
  await show(page, address, "flame", `?run=${sampled}&order=sandwich`);
  await page.fill("section.table input[type=search]", "prepare");
  await page.click("section.table tbody tr");
  await changed("function");
  await settled(page);
  await page.waitForSelector("h2:text('Callees')");
  return { found, hover, node, sandwich: (await snapshot(page)).text, canvases: await page.locator("canvas").count() };
}

async function memory() {
  await show(page, address, "memory", `?run=${recorded}`);
  const allocations = async () => (await snapshot(page)).tables.find((table) => table.title === "Allocations")?.rows ?? [];
  const all = await allocations();
  const box = await page.locator("svg.chart").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 100, { steps: 4 });
  await page.mouse.up();
  await changed("begin");
  await settled(page);
  const range = await parameters();
  const part = await allocations();
  await page.reload();
  await settled(page);
  return { all, part, range, reloaded: await allocations() };
}

async function source() {
  await show(page, address, "source", `?run=${sampled}`);
  await page.fill("section.table input[type=search]", "train.py");
  await page.click("section.table tbody tr");
  await changed("file");
  await settled(page);
  const rows = await page.evaluate(() => [...document.querySelectorAll(".source tbody tr")].map((row) => [Number(row.dataset.line), row.lastElementChild.textContent]));
  return { file: (await parameters()).file, wanted: file, rows };
}

async function keys() {
  await show(page, address, "overview", `?run=${recorded}`);
  await page.keyboard.press("3");
  await page.waitForFunction(() => location.hash.startsWith("#/operators"));
  await page.keyboard.press("]");
  await page.waitForFunction(() => location.hash.startsWith("#/modules"));
  await page.keyboard.press("[");
  await page.waitForFunction(() => location.hash.startsWith("#/operators"));
  await settled(page);
  await page.waitForSelector("section.table input[type=search]");
  await page.keyboard.press("/");
  return { view: await page.evaluate(() => location.hash), focused: await page.evaluate(() => document.activeElement?.getAttribute("type")) };
}

async function downloads() {
  await show(page, address, "memory", `?run=${recorded}&begin=0&end=${half}`);
  await page.click(".tools summary");
  const saved = {};
  for (const [name, title] of [["chrome", "Chrome trace"], ["speedscope", "speedscope"], ["collapsed", "Collapsed stacks"], ["hotspan", ".hotspan"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`.tools .menu a:text-is("${title}")`)]);
    saved[name] = join(folder, download.suggestedFilename());
    await download.saveAs(saved[name]);
  }
  await page.click(".tools .menu input[type=checkbox]");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click('.tools .menu a:text-is("Chrome trace")')]);
  saved.whole = join(folder, download.suggestedFilename());
  await download.saveAs(saved.whole);
  return saved;
}

/** Perfetto's side of the handshake, as its documentation has it. */
const PERFETTO = `<!doctype html><script>addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin);
  else window.received = event.data.perfetto;
})</script>`;

async function perfetto() {
  await context.route("https://ui.perfetto.dev/**", (route) => route.fulfill({ contentType: "text/html", body: PERFETTO }));
  await show(page, address, "operators", `?run=${recorded}`);
  await page.evaluate(() => { document.querySelector(".tools details.menu").open = true; });
  const [other] = await Promise.all([context.waitForEvent("page"), page.click("text=Open in Perfetto")]);
  await other.waitForFunction(() => window.received !== undefined);
  const { title, bytes } = await other.evaluate(() => ({ title: window.received.title, bytes: [...new Uint8Array(window.received.buffer)] }));
  const trace = JSON.parse(gunzipSync(Buffer.from(bytes)).toString());
  await other.close();
  return { title, spans: trace.traceEvents.filter((event) => event.ph === "X").length };
}

await perform(browser, [tables, modules, flame, memory, source, keys, downloads, perfetto]);
