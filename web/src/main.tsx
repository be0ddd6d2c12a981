// The beginning: draws the page.

import { render } from "preact";
import { Application } from "./application";
import "./style.css";
import "./views.css";
import "./panel.css";

const root = document.getElementById("app");
if (root !== null) render(<Application />, root);
