// The switch between light and dark.

import { chooseTheme, theme } from "../base/theme";

export function ThemeButton({ onChange }: { onChange: () => void }) {
  const other = theme() === "dark" ? "light" : "dark";
  const choose = () => {
    chooseTheme(other);
    onChange();
  };
  return (
    <button type="button" class="theme" onClick={choose} aria-label={`Switch to ${other}`} title={`Switch to ${other}`}>
      <span aria-hidden="true">{other === "dark" ? "☾" : "☀"}</span>
    </button>
  );
}
