// The beginning: draws the page.

import { render } from "preact";
import { restoreTheme } from "./base/theme";
import { Application } from "./application";
import "./style.css";
import "./views.css";
import "./panel.css";
import "./timeline.css";

restoreTheme();
const root = document.getElementById("app");
if (root !== null) render(<Application />, root);
