// A small square in the colour that something is drawn in.

export function Swatch({ colour }: { colour: string }) {
  return <svg class="swatch" width="10" height="10" aria-hidden="true"><rect width="10" height="10" rx="2" fill={colour} /></svg>;
}
