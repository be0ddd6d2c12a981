// Measures the timeline: from opening the page to spans on the screen, and the time of frames while moving and zooming.
// Usage: node e2e/frames.mjs ADDRESS
import { open } from "./browser.mjs";

const address = process.argv[2];
const { page, context } = await open(address);
const begun = performance.now();
await page.goto(`${address}#/timeline`);
await page.waitForFunction(() => Number(document.querySelector("canvas")?.dataset.spans) > 0, undefined, { timeout: 300_000 });
const first = performance.now() - begun;
await page.focus("canvas");
await page.evaluate(() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => {
    window.frames_ms.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});
for (const key of "wwwddddaaaasswwwwddddssss") {
  await page.keyboard.press(key);
  await page.waitForTimeout(50);
}
const times = (await page.evaluate(() => window.frames_ms)).sort((left, right) => left - right);
const at = (share) => Number((times[Math.floor(times.length * share)] ?? 0).toFixed(1));
await context.close();
console.log(JSON.stringify({ first_spans_ms: Math.round(first), frames: times.length, p50_ms: at(0.5), p95_ms: at(0.95), longest_ms: at(0.999) }));
