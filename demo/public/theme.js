// Runs before the first paint, so that a stored choice of theme does not flash; ../src/ui/theme.ts stores it.
try {
  const theme = localStorage.getItem("lapidary-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off: the system's choice holds.
}
