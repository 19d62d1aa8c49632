import { useTheme } from "./theme";

export function Header() {
  const [theme, toggle] = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <header className="masthead">
      <svg className="gem" viewBox="0 0 32 32" aria-hidden="true">
        <path className="gem-body" d="M9 4h14l7 9-14 15L2 13z" />
        <path className="gem-facets" d="M9 4l7 9 7-9M2 13h28M16 13v15" />
      </svg>
      <div>
        <h1>lapidary</h1>
        <p>Matrix products in this browser, timed and checked element by element.</p>
      </div>
      <button type="button" className="theme" onClick={toggle} aria-label={`Use the ${other} theme`} title={`Use the ${other} theme`}>
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <circle cx="10" cy="10" r="7" fill="none" stroke="currentColor" strokeWidth="1.6" />
          <path d="M10 3a7 7 0 0 1 0 14z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}
