// How the web app is built: relative addresses, since it is served below a secret, and nothing inlined, since the page's
// policy allows no inline script or style.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, cssCodeSplit: false },
});
