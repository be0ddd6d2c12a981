// What a person sees of a view, as data.

/** Tables with the keys of their columns and the text of their cells, and what must not be there. */
export function snapshot(page) {
  return page.evaluate(() => {
    const texts = (row) => [...row.children].map((cell) => cell.textContent.trim());
    const tables = [...document.querySelectorAll("main table")].map((table) => ({
      title: table.closest("section")?.querySelector("h2")?.textContent ?? table.closest("[aria-label]")?.getAttribute("aria-label") ?? "",
      keys: [...table.querySelectorAll("thead th")].map((head) => head.querySelector("button")?.dataset.key ?? head.textContent),
      rows: [...table.querySelectorAll("tbody tr")].map(texts),
    }));
    return {
      tables,
      text: document.querySelector("main")?.innerText ?? "",
      problem: document.querySelector(".problem")?.textContent ?? null,
      empty: document.querySelector(".empty")?.textContent ?? null,
      // Names are text: none of these may have come out of one.
      markup: document.querySelectorAll("main img, main script, main iframe, main b, main style").length,
      wide: document.documentElement.scrollWidth > innerWidth + 1,
    };
  });
}
