// Measures a timeline in Chromium: from opening the page to spans on the screen, and the time of frames while it is moved and zoomed.
// The frame rate is not limited, so the time between two frames is what a frame costs: script, painting and composing.
// Usage: node e2e/frames.mjs [READY]   READY is a selector that appears with the picture; ours when left out.
// The browser is started first and prints "browser". Then each line of the standard input is something to do, so that who starts the
// server can take the time: "picture ADDRESS" prints "painted", "overview ADDRESS" prints "painted" once nothing is missing in it, and
// "ride" prints the figures as JSON.
import { createInterface } from "node:readline";
import { open, settled } from "./browser.mjs";

const [ready = "canvas[data-state=ready]"] = process.argv.slice(2);
const UNLIMITED = ["--disable-frame-rate-limit", "--disable-gpu-vsync"];
const PATIENCE = 150_000;
const { page, context } = await open("http://127.0.0.1/", { more: UNLIMITED });
page.setDefaultTimeout(PATIENCE);

/** Runs in the page: turns the wheel with every frame, first around the middle, then across, and notes the time of each frame. */
const ride = async () => {
  const [x, y] = [innerWidth * 0.55, innerHeight * 0.45];
  const times = [];
  const turn = (options) => document.elementFromPoint(x, y)?.dispatchEvent(new WheelEvent("wheel", { clientX: x, clientY: y, bubbles: true, cancelable: true, ...options }));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const moves = [
    [160, { deltaY: -12, ctrlKey: true }],
    [160, { deltaX: 25 }],
    [160, { deltaX: -35 }],
    [80, { deltaY: 12, ctrlKey: true }],
    [120, { deltaX: 60 }],
    [120, { deltaY: 12, ctrlKey: true }],
  ];
  let last = await frame();
  for (const [count, options] of moves) {
    for (let turns = 0; turns < count; turns++) {
      turn(options);
      const now = await frame();
      times.push(now - last);
      last = now;
    }
  }
  const scripts = performance.getEntriesByName("timeline frame").map((entry) => entry.duration);
  return { times, scripts };
};
const figures = (list) => {
  const sorted = list.toSorted((left, right) => left - right);
  const at = (share) => Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2));
  return { count: sorted.length, p50_ms: at(0.5), p95_ms: at(0.95), longest_ms: at(1) };
};

const WORK = {
  picture: async (address) => {
    await page.goto(address);
    await page.waitForSelector(ready);
    return "painted";
  },
  overview: async (address) => {
    await page.goto(address);
    await page.waitForSelector("main[data-view=overview]");
    await settled(page);
    return "painted";
  },
  ride: async () => {
    await page.waitForTimeout(2000);
    const { times, scripts } = await page.evaluate(ride);
    return JSON.stringify({ frames: figures(times), scripts: figures(scripts) });
  },
};

console.log("browser");
for await (const line of createInterface(process.stdin)) {
  const [what, address] = line.split(" ");
  console.log(await WORK[what](address));
}
await context.close();
process.exit(0);
