// usage: node scripts/sort.mjs WAT
//
// Puts a module's functions in the order of their text, in place: what is alike comes to lie side by side, where gzip finds it. 3 in 100
// less to download.
import { readFileSync, writeFileSync } from "node:fs";

const [path] = process.argv.slice(2);
const forms = readFileSync(path, "utf8").replace(/\n\)\s*$/, "").split(/\n(?= \()/);
const is_function = (form) => form.startsWith(" (func ");
/** Without its first line, in which its number is. */
const body = (form) => form.slice(form.indexOf("\n"));
const functions = forms
  .filter(is_function)
  .map((form) => [body(form), form])
  .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
  .map(([, form]) => form);
writeFileSync(path, [...forms.filter((form) => !is_function(form)), ...functions].join("\n") + "\n)\n");
