// Visits views as a plan says and prints what it saw as JSON; python/tests/test_view_browser.py judges it.
// Usage: node e2e/views.mjs ADDRESS < PLAN, where PLAN is {"offline": false, "visits": [{"name", "view", "parameters", "axe", "phone", "picture", "dark", "height"}]}
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { open, show } from "./browser.mjs";
import { snapshot } from "./snapshot.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const address = process.argv[2];
const plan = JSON.parse(readFileSync(0, "utf8"));

/** What axe finds wrong with what is shown. The page allows no script of others, so axe runs in a world of its own.
 *  Of a table the first rows are looked at: the others are made alike. */
async function violations(session, page) {
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  const run = (expression, awaitPromise = false) => session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise, returnByValue: true });
  await run(AXE);
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const { result } = await run("axe.run({ exclude: ['tbody tr:nth-child(n+9)', '.source tbody tr:nth-child(n+40)'] }, { resultTypes: ['violations'] }).then((result) => result.violations.map((known) => `${known.id}: ${known.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`))", true);
    found.push(...result.value.map((known) => `${colorScheme} ${known}`));
  }
  await page.emulateMedia({ colorScheme: "light" });
  return found;
}

const { page, context, complaints } = await open(address);
const session = await context.newCDPSession(page);
if (plan.offline) await context.setOffline(true);
const seen = {};
for (const visit of plan.visits) {
  await show(page, address, visit.view, visit.parameters ?? "");
  seen[visit.name] = await snapshot(page);
  if (visit.axe) seen[visit.name].violations = await violations(session, page);
  if (visit.phone) {
    await page.setViewportSize({ width: 390, height: 800 });
    seen[visit.name].wideOnPhone = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
    await page.setViewportSize({ width: 1280, height: 800 });
  }
  if (visit.picture) {
    if (visit.dark) await page.emulateMedia({ colorScheme: "dark" });
    if (visit.height !== undefined) await page.setViewportSize({ width: 1280, height: visit.height });
    await page.waitForTimeout(300);
    await page.screenshot({ path: visit.picture });
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: "light" });
  }
}
await context.close();
console.log(JSON.stringify({ seen, complaints }));
