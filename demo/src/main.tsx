import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { parse_query } from "./bench/url";
import "./styles.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
const query = parse_query(location.search);
// Machine mode shows nothing: a bare host may have no font, and Chromium ends there at the first letter that it lays out.
root.hidden = query.headless;
createRoot(root).render(
  <StrictMode>
    <App query={query} />
  </StrictMode>,
);
