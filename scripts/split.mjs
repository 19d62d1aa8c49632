// usage: node scripts/split.mjs WAT FOLDER TEXTS...
//
// Cuts a module in WebAssembly's text, as wasm-opt prints it, into a core that starts and the parts that are loaded when they are first
// needed. scripts/parts.json names them; each becomes FOLDER/<name>.wat, the core FOLDER/core.wat. TEXTS are folders in one of which
// build.rs has put the shaders.
//
//   core  call ──► a gate's stand-in: call_indirect ──► the gate's slot of the table, which the part fills when it is instantiated
//   part  call ──► functions of the core, which it imports with the memory, the tables and the globals
//
// A part gets the functions that only its gates lead to, and with them those of its rooms that are only called by their address. What two
// parts need is the core's, unless they come `after` the same one, or one after the other: then it is that one's, and called through the table, as
// gates are.
// The memory goes by a name that the whole text gives: a part of another build does not find it.
//
// A gate that is called before its part is there traps: Rust loads the part first (src/web/parts.rs).
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [wat_path, folder, ...text_folders] = process.argv.slice(2);
const told = JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "parts.json"), "utf8"));

function die(message) {
  console.error(`split: ${message}`);
  process.exit(1);
}

/** `$name`, or `$"name"`. */
const NAME = /\$(?:"(?:[^"\\]|\\.)*"|[^\s()]+)/;
const name_in = (text) => text.match(NAME)?.[0];
const all_names_in = (text) => [...text.matchAll(new RegExp(NAME, "g"))].map(([name]) => name);

/** A function's name as Rust has it, without the hashes of crates. */
const plain = (name) => name.replace(/^\$"?|"$/g, "").replace(/\[[0-9a-f]{12,16}\]/g, "");

// The module's forms by kind. Each begins on a line of its own, behind one space.
const wat = readFileSync(wat_path, "utf8");
const build = `$${createHash("sha256").update(wat).digest("hex").slice(0, 12)}`;
const [head, ...all_forms] = wat.replace(/\n\)\s*$/, "").split(/\n(?= \()/);
const forms = { type: [], import: [], global: [], memory: [], data: [], table: [], elem: [], export: [], func: [] };
for (const form of all_forms) (forms[form.match(/^ \((\w+)/)[1]] ?? die(`what to do with ${form.slice(0, 40)}…?`)).push(form);
if (!head.startsWith("(module") || forms.elem.length !== 1 || forms.memory.length !== 1) die(`${wat_path} is not laid out as this script knows it`);

/** `(param …) (result …)`, without the parameters' names. */
function signature_of(form) {
  const found = form.split("\n", 1)[0].matchAll(/\((param|result) (?:\$\S+ )?([\w ]+)\)/g);
  return Array.from(found, ([, what, types]) => `(${what} ${types})`).join(" ");
}

const functions = new Map();
for (const form of forms.func) {
  const calls = new Set(Array.from(form.matchAll(/\(call (?=\$)/g), ({ index }) => name_in(form.slice(index + 6, index + 4000))));
  functions.set(name_in(form), { form, signature: signature_of(form), calls });
}
const imports = new Map();
for (const form of forms.import) {
  const [, of] = form.match(/^ \(import "[^"]*" "[^"]*" (\(func .*)\)$/) ?? die(`an import of something else than a function: ${form}`);
  imports.set(name_in(of), signature_of(of));
}
// Debug's text of strings and characters, with quotes and escapes, which only panics might show, takes kilobytes of tables: they are shown as
// they are.
for (const [debug, display] of [
  ["<str as core::fmt::Debug>::fmt", "<str as core::fmt::Display>::fmt"],
  ["<char as core::fmt::Debug>::fmt", "<char as core::fmt::Display>::fmt"],
]) {
  const [name, other] = [debug, display].map((wanted) => [...functions.keys()].find((name) => plain(name) === wanted));
  if (!name || !other) continue;
  const { signature } = functions.get(name);
  const values = signature.match(/\(param /g).map((_, i) => `(local.get ${i})`);
  functions.set(name, { signature, calls: new Set([other]), form: ` (func ${name} ${signature}\n  (call ${other} ${values.join(" ")})\n )` });
}
const signature = (name) => functions.get(name)?.signature ?? imports.get(name);

// Functions that are called by their address, in the order of their slots in the table.
const [, table_name, first_slot] = forms.elem[0].match(/\(table (\S+)\) \(i32\.const (\d+)\) func /) ?? die("the list of addressed functions is laid out otherwise");
const slots = all_names_in(forms.elem[0].slice(forms.elem[0].indexOf(" func ")));

/** All that calls lead to from those functions, but not into or beyond those of `stop`. */
function reach(from, stop) {
  const seen = new Set();
  const left = [...from];
  while (left.length > 0) {
    const name = left.pop();
    if (seen.has(name) || stop.has(name) || !functions.has(name)) continue;
    seen.add(name);
    left.push(...functions.get(name).calls);
  }
  return seen;
}

// What belongs where.
const by_plain = new Map(Array.from(functions.keys(), (name) => [plain(name), name]));
const exported = new Map(forms.export.map((form) => form.match(/^ \(export "(.*)" \(func (\$.*)\)\)$/)?.slice(1)).filter(Boolean));
const parts = Object.entries(told).map(([name, { after = [], gates, exports = [], rooms, texts }]) => {
  const named = (found, gate) => found ?? die(`${gate}, a gate of the part ${name}, is not there: was it renamed, or inlined?`);
  return {
    name,
    after,
    texts,
    gates: new Set([...gates.map((gate) => named(by_plain.get(gate), gate)), ...exports.map((name) => named(exported.get(name), name))]),
    addressed: slots.filter((slot) => functions.has(slot) && new RegExp(rooms).test(plain(slot))),
  };
});
const gates = new Set(parts.flatMap((part) => [...part.gates]));
const addressed = new Set(parts.flatMap((part) => part.addressed));
const core = reach([...exported.values(), ...slots.filter((slot) => !addressed.has(slot))], gates);
for (const part of parts) {
  const elsewhere = new Set([...core, ...[...gates].filter((gate) => !part.gates.has(gate))]);
  part.own = reach([...part.gates, ...part.addressed], elsewhere);
}
for (const name of functions.keys()) {
  const owners = parts.filter(({ own }) => own.has(name));
  if (owners.length < 2) continue;
  for (const { own } of owners) own.delete(name);
  const first = parts.find((first) => owners.every((part) => part === first || part.after.includes(first.name)));
  (first?.own ?? core).add(name);
}

// What a part calls that is neither its own nor the core's.
for (const part of parts) {
  const called = new Set([...part.own].flatMap((name) => [...functions.get(name).calls]));
  part.foreign = new Set(parts.filter((other) => other !== part).flatMap(({ own }) => [...own].filter((name) => called.has(name))));
}

// The table has a slot for each gate and what parts call of one another, behind those that it had.
const through_table = new Set([...gates, ...parts.flatMap(({ foreign }) => [...foreign])]);
slots.push(...[...through_table].filter((name) => !slots.includes(name)));
const slot_of = new Map(slots.map((name, i) => [name, Number(first_slot) + i]));
const table_size = Number(first_slot) + slots.length;
const tables = forms.table.map((form) => form.replace(/ \d+ \d+ funcref/, ` ${table_size} ${table_size} funcref`));

/** What the core exports to the parts, by short names that no function of Rust has. */
const lent = new Map();
function lend(kind, name) {
  if (!lent.has(name)) lent.set(name, { kind, short: `$${lent.size.toString(36)}` });
  return lent.get(name).short;
}

// Data: shaders that are a part's are zeros in the core, of which wasm-opt leaves nothing.
const escaped = (bytes) => Array.from(bytes, (byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
function bytes_of(text) {
  const named = { n: 10, t: 9, r: 13 };
  const unescaped = text.replace(/\\(?:([0-9a-f]{2})|(.))/gi, (_, hex, char) => String.fromCharCode(hex ? parseInt(hex, 16) : (named[char] ?? char.charCodeAt(0))));
  return Buffer.from(unescaped, "latin1");
}
const data = forms.data.map((form) => {
  const [, name, at, text] = form.match(/^ \(data (\S+) \(i32\.const (\d+)\) "((?:[^"\\]|\\.)*)"\)$/) ?? die("data is laid out otherwise");
  return { name, at: Number(at), bytes: bytes_of(text) };
});
// Builds with other features have folders too, and texts that are written otherwise.
const has = (text) => data.some(({ bytes }) => bytes.includes(text));
const texts_of = (path) => (existsSync(path) ? readdirSync(path) : []).filter((name) => has(readFileSync(join(path, name)))).length;
const [text_folder] = text_folders.map((path) => ({ path, texts: texts_of(path) })).filter(({ texts }) => texts > 0).sort((a, b) => b.texts - a.texts).map(({ path }) => path);
for (const part of parts) {
  const names = readdirSync(text_folder ?? die("no folder of shaders was named")).filter((name) => new RegExp(part.texts).test(name));
  const shared = names.find((name) => parts.some((other) => other !== part && new RegExp(other.texts).test(name)));
  if (shared) die(`${shared} would be a text of two parts`);
  part.data = names.flatMap((name) => {
    const text = readFileSync(join(text_folder, name));
    const segment = data.find(({ bytes }) => bytes.includes(text));
    if (!segment) return [];
    const at = segment.bytes.indexOf(text);
    // A table of texts may name it, but no function that is there before the part is.
    const place = `(i32.const ${segment.at + at})`;
    const user = Array.from(functions).find(([user, { form }]) => form.includes(place) && !parts.some(({ own }) => own.has(user)));
    if (user) die(`${user[0]} of the core has ${name}, which would be a text of ${part.name}`);
    segment.bytes.fill(0, at, at + text.length);
    return ` (data (i32.const ${segment.at + at}) "${escaped(text)}")`;
  });
}

function write(name, forms) {
  writeFileSync(join(folder, `${name}.wat`), `(module\n${forms.join("\n")}\n)\n`);
}

/** Stands in for a function that another part has. */
function stand_in(name) {
  const count = signature(name).match(/\(param ([^)]*)\)/g)?.length ?? 0;
  const values = Array.from({ length: count }, (_, i) => `(local.get ${i})`);
  return ` (func ${name} ${signature(name)} (call_indirect ${table_name} ${signature(name)} ${values.join(" ")} (i32.const ${slot_of.get(name)})))`;
}

for (const { name, own, foreign, data } of parts) {
  const code = [...Array.from(own, (name) => functions.get(name).form), ...Array.from(foreign, stand_in)].join("\n");
  const needed = new Set([...own].flatMap((name) => [...functions.get(name).calls]).filter((name) => !own.has(name) && !foreign.has(name)));
  const globals = forms.global.filter((form) => code.includes(`global.get ${name_in(form)}`) || code.includes(`global.set ${name_in(form)}`));
  const filled = slots.filter((slot) => own.has(slot));
  write(name, [
    ...forms.type,
    ` (import "" "${build}" ${forms.memory[0].trim()})`,
    ...tables.map((form) => ` (import "" "${lend("table", name_in(form))}" ${form.trim()})`),
    ...globals.map((form) => {
      const [, name, type] = form.match(/^ \(global (\S+) (\(mut \w+\)|\w+)/);
      return ` (import "" "${lend("global", name)}" (global ${name} ${type}))`;
    }),
    ...Array.from(needed, (name) => ` (import "" "${lend("func", name)}" (func ${name} ${signature(name)}))`),
    ...data,
    ...filled.map((slot) => ` (elem (table ${table_name}) (i32.const ${slot_of.get(slot)}) func ${slot})`),
    code,
  ]);
  console.log(`${name}: ${own.size} of ${functions.size} functions, ${data.length} texts, ${needed.size} functions of the core, ${foreign.size} of other parts`);
}

write("core", [
  ...forms.type,
  ...forms.import,
  ...forms.global,
  ...forms.memory,
  ...data.map(({ name, at, bytes }) => ` (data ${name} (i32.const ${at}) "${escaped(bytes)}")`),
  ...tables,
  ` (elem (table ${table_name}) (i32.const ${first_slot}) func ${slots.map((slot) => (core.has(slot) || imports.has(slot) ? slot : "$absent")).join(" ")})`,
  ...forms.export,
  ` (export "${build}" (memory ${name_in(forms.memory[0])}))`,
  ...Array.from(lent, ([name, { kind, short }]) => ` (export "${short}" (${kind} ${name}))`),
  " (func $absent (unreachable))",
  ...Array.from(gates, stand_in),
  ...Array.from(core, (name) => functions.get(name).form),
]);
