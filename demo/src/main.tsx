import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { parse_query } from "./bench/url";
import "./styles.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App query={parse_query(location.search)} />
  </StrictMode>,
);
