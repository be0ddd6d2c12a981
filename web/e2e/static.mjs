// Opens a page to share from the disk with the network off and prints what it saw. Usage: node e2e/static.mjs FILE
import { pathToFileURL } from "node:url";
import { open, show } from "./browser.mjs";

const address = pathToFileURL(process.argv[2]).href;
const { page, context, complaints } = await open(address);
await context.setOffline(true);
const seen = { views: {} };
for (const view of ["overview", "advice", "timeline", "steps", "operators", "kernels", "gpu", "flame", "quality"]) {
  await show(page, address, view);
  seen.views[view] = await page.evaluate(() => ({
    text: document.querySelector("main")?.innerText ?? "",
    problem: document.querySelector(".problem")?.textContent ?? null,
    images: document.querySelectorAll("main img").length,
  }));
}
await show(page, address, "timeline");
await page.waitForSelector("canvas[data-state=ready]");
seen.spans = await page.evaluate(() => Math.max(...performance.getEntriesByName("timeline frame").map((entry) => entry.detail.rectangles)));
await context.close();
console.log(JSON.stringify({ ...seen, complaints }));
