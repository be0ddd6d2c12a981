// Canvases at the resolution of the screen, and colours of the page for drawing.

export interface Sheet {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
}

/** Sizes a canvas to its place and this height, and clears it. */
export function sheet(canvas: HTMLCanvasElement, height: number): Sheet | null {
  const context = canvas.getContext("2d");
  if (context === null) return null;
  const ratio = devicePixelRatio;
  const width = canvas.clientWidth;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** What is written on canvases. */
export const FONT = "11px ui-monospace, monospace";

let measured = 0;

/** How wide a letter is; all are, in this font. */
function letterWidth(): number {
  if (measured === 0 && typeof document !== "undefined") {
    const context = document.createElement("canvas").getContext("2d");
    if (context !== null) {
      context.font = FONT;
      measured = context.measureText("M".repeat(100)).width / 100;
    }
  }
  return measured > 0 ? measured : 6.7;
}

/** As much of a text as fits, with a little room on both sides. One letter is measured: measuring each text is what would make drawing slow. */
export function fitted(text: string, width: number, letter = letterWidth()): string {
  const letters = Math.floor((width - 5) / letter);
  if (letters < 3) return "";
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}
