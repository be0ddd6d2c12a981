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

/** As much of a text as fits. Letters are taken as equally wide: measuring each is what would make drawing slow. */
export function fitted(text: string, width: number): string {
  const letters = Math.floor((width - 4) / 6.2);
  if (letters < 3) return "";
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}
