// Looks at every view as a person would and prints what it saw as JSON; python/tests/test_view_browser.py judges it.
// Usage: node e2e/run.mjs ADDRESS
import { open, show } from "./browser.mjs";

const address = process.argv[2];
const VIEWS = ["overview", "advice", "timeline", "steps", "operators", "kernels", "gpu", "functions", "flame", "memory", "ranks", "compare", "quality"];

const cells = (page, table = 0) =>
  page.evaluate((place) => {
    const chosen = document.querySelectorAll("section.table table")[place];
    return chosen === undefined ? [] : [...chosen.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  }, table);

const { page, context, complaints } = await open(address);
const seen = { views: {} };
try {
  for (const view of VIEWS) {
    await show(page, address, view);
    seen.views[view] = await page.evaluate(() => ({
      text: document.querySelector("main")?.innerText ?? "",
      problem: document.querySelector(".problem")?.textContent ?? null,
      wide: document.documentElement.scrollWidth > innerWidth,
      images: document.querySelectorAll("main img").length,
    }));
  }

  await show(page, address, "operators");
  seen.operators = await cells(page);
  await page.click("th button[data-key=count]");
  seen.sorted = await cells(page);
  await page.fill("section.table input[type=search]", "mm");
  await page.waitForFunction(() => location.hash.includes("filter=mm"));
  seen.filtered = await cells(page);
  await page.reload();
  await page.waitForSelector("section.table tbody tr");
  seen.reloaded = await cells(page);
  seen.sort_after_reload = await page.getAttribute("th:has(button[data-key=count])", "aria-sort");

  await show(page, address, "kernels");
  seen.kernels = await cells(page);

  await show(page, address, "timeline");
  await page.waitForSelector("canvas[data-state=ready]");
  const range = () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])));
  // Before anything is moved the address says nothing: all is seen.
  const untouched = await range();
  const before = { from: "0", to: "5900000", ...untouched };
  await page.focus(".stage");
  for (let time = 0; time < 4; time++) await page.keyboard.press("w");
  await page.waitForFunction((old) => new URLSearchParams(location.hash.split("?")[1]).get("from") !== old, untouched.from ?? null);
  const after = await range();
  seen.zoom = { before, after };
  await page.reload();
  await page.waitForSelector("canvas[data-state=ready]");
  seen.zoom.reloaded = await range();
  await page.fill("input[type=search]", "kernel");
  await page.waitForFunction(() => document.querySelector("[data-hits]") !== null);
  seen.hits = Number(await page.getAttribute("[data-hits]", "data-hits"));
  await page.click("button[aria-label=Next]");
  await page.waitForSelector("section[aria-label=Span]");
  seen.span = await page.innerText("section[aria-label=Span]");
  await page.click("text=Tables of what is seen");
  await page.waitForSelector("section.table table");
  seen.within = await cells(page);

  const chosen = (await range()).span;
  await show(page, address, "overview");
  await show(page, address, "timeline", `?span=${chosen}`);
  await page.waitForFunction((whole) => Number(new URLSearchParams(location.hash.split("?")[1]).get("to") ?? whole) < whole, Number(before.to));
  seen.linked = { span: chosen, ...(await range()) };

  await page.setViewportSize({ width: 390, height: 800 });
  seen.phone = {};
  for (const view of VIEWS) {
    await show(page, address, view);
    seen.phone[view] = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1);
  }
} catch (error) {
  seen.failed = String(error);
} finally {
  await context.close();
}
seen.complaints = complaints;
console.log(JSON.stringify(seen));
