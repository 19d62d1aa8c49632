/**
 * Who is faster. The entrants take turns, A B C B C A, so that what changes with time, clocks and heat, changes for all, and none has the
 * best place in every round. By slope, a sample is the difference between runs of d and 3 d products over 2 d, so that what a run costs
 * besides, its last wait above all, drops out; d is such that the difference is `min_ms` or more. Else a sample is one whole run of `count`.
 */

/** The most products in the shorter run. */
const MOST = 4096;
/** Products after the first that do not count, and what is waited for what they set off. */
const WARM_UP = 4;
const SETTLE_MS = 400;
/** No round begins after this, from the third on. */
const BUDGET_MS = 8_000;
/** What has not answered by then will not: it drops out, and the others go on. */
const PATIENCE_MS = 60_000;

/** The same promise, but rejected when it takes too long. */
export function patiently(promise, patience_ms = PATIENCE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${patience_ms / 1000} s`)), patience_ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function time(entrant, count) {
  const begun = performance.now();
  await patiently(entrant.run(count));
  return performance.now() - begun;
}

/** The faster of two, since a run that something else held up would say too much. */
const fastest = async (entrant, count) => Math.min(await time(entrant, count), await time(entrant, count));

/** d: products of which 2 d more take `min_ms` more. A run that takes many times that is no run whose wait counts. */
async function products_in(entrant, min_ms) {
  let count = 1;
  for (;;) {
    const short_ms = await fastest(entrant, count);
    if (short_ms >= 5 * min_ms) return count;
    const added_ms = (await fastest(entrant, 3 * count)) - short_ms;
    if (added_ms >= min_ms || count >= MOST) return count;
    const wanted = Math.ceil((count * min_ms) / Math.max(added_ms, 0.01));
    count = Math.min(Math.max(wanted, count * 2), count * 16, MOST);
  }
}

/** A run may be shorter than a shorter one by chance; its mean is then the best that is known, and counts the wait against it. */
const slope = (short_ms, long_ms, count) => (long_ms > short_ms ? (long_ms - short_ms) / (2 * count) : long_ms / (3 * count));

async function sample(entrant, { by_slope, count }) {
  if (!by_slope) return (await time(entrant, count)) / count;
  const short_ms = await time(entrant, entrant.repeats);
  return slope(short_ms, await time(entrant, 3 * entrant.repeats), entrant.repeats);
}

/** Gives each entrant `samples_ms` a product, or `error`: then it has dropped out, and its samples do not count. */
export async function race(entrants, { samples, min_ms, by_slope, count = 1 }, progress) {
  const attempt = async (entrant, step) => {
    progress(entrant.library);
    await step().catch((error) => (entrant.error = error));
  };
  for (const entrant of entrants.filter(({ error }) => !error)) {
    await attempt(entrant, async () => {
      await time(entrant, count); // compiles what is not compiled
      if (by_slope) {
        // What is wanted again is compiled beside other work, and copied into a form that is read faster.
        await time(entrant, WARM_UP);
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      }
      entrant.repeats = by_slope ? await products_in(entrant, min_ms) : count;
      entrant.samples_ms = [];
    });
  }
  const begun = performance.now();
  for (let round = 0; round < samples && (round < 2 || performance.now() - begun < BUDGET_MS); round++) {
    const begins = round % entrants.length;
    for (const entrant of [...entrants.slice(begins), ...entrants.slice(0, begins)]) {
      if (entrant.error) continue;
      await attempt(entrant, async () => entrant.samples_ms.push(await sample(entrant, { by_slope, count })));
    }
  }
}
