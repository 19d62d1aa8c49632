// What tuning found, from visit to visit: one object in the browser's cache storage, the names of tiles by device and version.

const CACHE = "lapidary";
// Requests need an address; nobody is asked at this one.
const PLACE = "https://lapidary.invalid/tuned";
const MOST = 16;

/** All that is kept: nothing where there is no storage, or it is denied, or what it holds is not ours. */
export async function read() {
  try {
    return Object(await (await caches.match(PLACE, { cacheName: CACHE })).json());
  } catch {
    return {};
  }
}

/** Longer than what is kept under a key ever is. */
const MOST_LENGTH = 1000;

/** What is kept under a key. */
export const find = (all, key) => (all[key]?.length < MOST_LENGTH ? all[key] : undefined);

/** Keeps the names of tiles under a key, or what is kept no more if all are empty; gives whether that could be done. */
export async function keep(key, tiles) {
  try {
    const { [key]: _, ...others } = await read();
    const entries = Object.entries(others).slice(1 - MOST);
    if (/[^,]/.test(tiles)) entries.push([key, tiles]);
    await (await caches.open(CACHE)).put(PLACE, new Response(JSON.stringify(Object.fromEntries(entries))));
    return true;
  } catch {
    return false;
  }
}
