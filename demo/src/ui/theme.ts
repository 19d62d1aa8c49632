/** Light or dark: the system's choice until the button is pressed, then the stored one (read in public/theme.js). */
import { useEffect, useState } from "react";

export type Theme = "light" | "dark";

const dark_system = matchMedia("(prefers-color-scheme: dark)");

function current(): Theme {
  const stored = document.documentElement.dataset["theme"];
  if (stored === "light" || stored === "dark") return stored;
  return dark_system.matches ? "dark" : "light";
}

export function useTheme(): [Theme, () => void] {
  const [theme, set_theme] = useState(current);

  useEffect(() => {
    const follow = () => set_theme(current());
    dark_system.addEventListener("change", follow);
    return () => dark_system.removeEventListener("change", follow);
  }, []);

  const toggle = () => {
    const next: Theme = theme === "dark" ? "light" : "dark";
    document.documentElement.dataset["theme"] = next;
    try {
      localStorage.setItem("lapidary-theme", next);
    } catch {
      // Storage is switched off: the choice holds until the page is left.
    }
    set_theme(next);
  };
  return [theme, toggle];
}
