/** Packs the package as it would be published and installs it in a folder, without a network. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { PACKAGE } from "./server.mjs";

const call = promisify(execFile);
const npm = process.platform === "win32" ? "npm.cmd" : "npm";

/** What a command says; its output is in the error if it fails. */
export async function run(command, args, options) {
  try {
    return (await call(command, args, { timeout: 60_000, ...options })).stdout;
  } catch (error) {
    throw new Error(`${command} ${args.join(" ")}\n${error.stdout}\n${error.stderr}`, { cause: error });
  }
}

/** A folder with the packed package, and the names of what is in it. */
export async function pack() {
  const folder = await mkdtemp(join(tmpdir(), "lapidary-"));
  const [packed] = JSON.parse(await run(npm, ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: PACKAGE }));
  const names = packed.files.map(({ path }) => path).sort();
  return { folder, names, tarball: join(folder, packed.filename), remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Installs it in a project: a copy of `fixture`, or an empty one. */
export async function install({ folder, tarball }, name, fixture) {
  const project = join(folder, name);
  if (fixture) await cp(fixture, project, { recursive: true });
  else await cp(new URL("./vite-app/package.json", import.meta.url), join(project, "package.json"));
  await run(npm, ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", tarball], { cwd: project });
  return project;
}

/** Writes a script into a project and runs it. */
export async function node(project, name, text, args = []) {
  await writeFile(join(project, name), text);
  return run(process.execPath, [...args, name], { cwd: project });
}
