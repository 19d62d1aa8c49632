// The CPU's threads. The thread that calls does its share; the others are workers, each with a kernel of its own, started from the text of
// `walker`, so that no file of theirs has to be found by a bundler or allowed by another origin.
//
// Where the page is isolated, operands and result lie in memory that all share, and each thread takes unit after unit until none is left: of a
// product behind others, the thread that calls in a turn of the event loop.
// Elsewhere each worker is sent copies of what its share of the rows or columns needs, and sends its share of the result back.
//
// A worker counts once it has answered, so nothing ever waits for one that never starts; but the page has to hear of it, which it does not while
// promise follows on promise: a product that would have had more threads ends in a turn of the event loop. If a worker fails, all end, and the
// caller computes alone.
import { walker } from "./walk.js";

/** Workers that have nothing to do for so long end, and start anew when they are missed. */
const IDLE_MS = 20_000;
/** A worker that has said nothing for so long, and a millisecond for each million operations, has failed. */
const PATIENCE_MS = 10_000;
/** Products on their way to the workers as copies. With more of them the caller computes alone. */
const QUEUED = 4;

/** Products of fewer operations are done before another thread has heard of them. */
const SHARED_FLOPS = 32e6;
/** The most products of a batch that is shared: where each begins is written down. */
const SHARED_ITEMS = 1 << 22;
/** Rows and columns that a shared product has at least, so that it computes much more than it reads. */
const SHARED_SIDE = 64;
/** What a thread computes at least, and of how many rows or columns. */
const THREAD_FLOPS = 8e6;
const THREAD_SIDE = 32;

/** Makes a worker of a script's text; Node's are others. */
let make = (text) => new Worker((address ??= URL.createObjectURL(new Blob([text]))));
let address;
/** As many threads as there are cores, but no more than these, each of which brings B for itself. */
let cores = Math.min(globalThis.navigator?.hardwareConcurrency ?? 1, 16);

export function set_worker(maker, most) {
  make = maker;
  cores = most;
}

const has_shared_memory = () => globalThis.SharedArrayBuffer && globalThis.crossOriginIsolated !== false;

/** Memory that nobody else writes to: a caller's own may be shared too, and change as soon as the call has returned. */
const ours = new WeakSet();

function shared_array(length) {
  const array = new Float32Array(new SharedArrayBuffer(length * 4));
  ours.add(array.buffer);
  return array;
}

/** What a worker does. */
function serve(walker) {
  let thread;
  self.onmessage = ({ data }) => {
    const { module, sizes, id, at, job, units } = data;
    if (module) {
      thread = walker(new WebAssembly.Instance(module).exports, sizes);
      return self.postMessage({});
    }
    const out = (job.out ??= new Float32Array(job.m * job.n * Math.max(job.starts.length / 3, 1)));
    thread.run(job, units);
    if (units) self.postMessage({ id });
    else self.postMessage({ id, at, m: job.m, n: job.n, out }, [out.buffer]);
  };
}

/** Starts the kernel in this thread, and up to `most` of them when they are wanted; 0 leaves it to the machine. */
export async function start(bytes, lengths, most) {
  const sizes = [...lengths];
  const { module, instance } = await WebAssembly.instantiate(bytes);
  const crew = new Crew(module, sizes, most || cores, walker(instance.exports, sizes), instance.exports.memory.buffer.byteLength);
  crews.add(crew);
  return crew;
}

const crews = new Set();

/** Bytes of the memories of all kernels. */
export const memory_bytes = () => [...crews].reduce((sum, { kernel_bytes, workers }) => sum + kernel_bytes * (1 + workers.length), 0);

class Crew {
  workers = [];
  /** What is to be done with an answer, by the number of the job; without an answer it has failed. */
  jobs = new Map();
  last = 0;
  /** How often workers have said something. */
  heard = 0;
  fault = "";
  /** When this thread's shares of products that lie in shared memory are done. */
  shares = Promise.resolve();
  /** What a turn of the event loop is told by, while anyone waits for one. */
  channel;
  /** Who waits. */
  turns = [];
  /** Whether the last product that was asked for should have had threads that have not answered yet. */
  is_short = false;

  constructor(module, sizes, most, own, kernel_bytes) {
    Object.assign(this, { module, sizes, most, own, kernel_bytes });
  }

  free() {
    crews.delete(this);
    this.end();
  }

  /**
   * How many threads are to compute a product, or a batch of so many: as many as pay, of those that have started; the others are started for
   * what comes later. The products of a batch are shared out whole.
   */
  threads(m, k, n, items) {
    this.is_short = false;
    const flops = 2 * m * k * n * items;
    if (flops < SHARED_FLOPS || items > SHARED_ITEMS) return 1;
    // Where copies are sent, they should be computed with many times.
    const least = has_shared_memory() && items > 1 ? 1 : SHARED_SIDE;
    if (Math.min(m, n) < least) return 1;
    const most = items > 1 ? items : Math.floor(Math.max(m, n) / THREAD_SIDE);
    const wanted = Math.min(this.most, Math.floor(flops / THREAD_FLOPS), most);
    while (this.workers.length < Math.min(wanted, this.most) - 1) this.hire();
    if (!has_shared_memory() && this.jobs.size >= QUEUED) return 1;
    const ready = 1 + this.workers.filter(({ ready }) => ready).length;
    this.is_short = ready < Math.min(wanted, this.most);
    return Math.min(wanted, ready);
  }

  /** Memory for what stays on the device: where all threads see it, or null where that is not to be had or not worth it. */
  kept(length) {
    try {
      const shares = this.most > 1 && length >= SHARED_SIDE ** 2 && has_shared_memory();
      return shares ? shared_array(length) : null;
    } catch {
      return null;
    }
  }

  hire() {
    try {
      // Bundlers that keep functions' names have them given by a helper, which workers have not got; nothing else here is called like it.
      const helper = /([\w$]+)\([\w$]+, ?"/.exec(walker)?.[1] ?? "__name";
      const worker = make(`var ${helper}=(f)=>f;(${serve})(${walker})`);
      this.workers.push(worker);
      worker.onmessage = ({ data }) => {
        worker.ready = true;
        this.hear(data);
      };
      worker.onerror = worker.onmessageerror = (event) => {
        event.preventDefault?.();
        this.fail(event.message ?? "a content security policy may lack worker-src blob:");
      };
      worker.postMessage({ module: this.module, sizes: this.sizes });
    } catch (error) {
      this.fail(error.message);
    }
  }

  /** A share of a job is done, or a worker has started. */
  hear(data) {
    if (data.id === this.waited) this.heard++;
    this.jobs.get(data.id)?.(data);
    this.wait();
  }

  /** Waits for a turn of the event loop. */
  turn() {
    const { port1, port2 } = (this.channel ??= new MessageChannel());
    return new Promise((resolve) => {
      this.turns.push(resolve);
      port1.onmessage = () => {
        this.turns.shift()();
        if (this.turns.length > 0) return;
        // Node does not end while a port is open.
        port1.close();
        this.channel = undefined;
      };
      port2.postMessage(0);
    });
  }

  /** Lets the page hear of workers that were missed. */
  catch_up() {
    this.is_short = false;
    return this.turn();
  }

  /** Waits for workers that fail to answer, or have nothing to do. */
  wait() {
    const [oldest, answer] = this.jobs.entries().next().value ?? [];
    // What is answered of later jobs gives the oldest no more time.
    if (answer && oldest === this.waited) return;
    this.waited = oldest;
    clearTimeout(this.timer);
    this.timer = answer ? setTimeout(() => this.lose_patience(), answer.patience_ms) : setTimeout(() => this.end(), IDLE_MS);
    // Node has an end to come to.
    this.timer.unref?.();
  }

  /** They have failed, unless this thread was so busy itself that it has not heard them. */
  async lose_patience() {
    const { heard, waited } = this;
    await this.turn();
    if (this.heard === heard && this.jobs.has(waited)) return this.fail("one did not answer");
    if (this.waited === waited) this.waited = undefined;
    this.wait();
  }

  fail(reason) {
    this.fault ||= reason;
    this.most = 1;
    this.end();
  }

  /** Ends the workers. What they were at has failed. */
  end() {
    clearTimeout(this.timer);
    for (const worker of this.workers.splice(0)) worker.terminate();
    for (const answer of this.jobs.values()) answer();
  }

  /** Computes in this thread alone. */
  compute(job) {
    this.own.run(job);
  }

  exact(...block) {
    this.own.exact(...block);
  }

  /** What this device is called. */
  name() {
    if (this.fault) return `CPU, one thread, since workers failed: ${this.fault}`;
    return `CPU, ${this.most > 1 ? `${this.most} threads` : "one thread"}`;
  }

  /**
   * Computes with so many threads: a promise whether all went well. Operands that may change have been copied when it returns. What follows in
   * a benchmark goes on alone if need be, since only its time counts.
   */
  async share(job, threads, repeats) {
    let went_well = await this.once(job, threads);
    for (; --repeats; went_well = true) if (!(await this.once(job, threads))) this.own.run(job);
    return went_well;
  }

  once(job, threads) {
    const team = this.workers.filter(({ ready }) => ready).slice(0, threads - 1);
    // They have ended since they were counted.
    if (team.length < threads - 1) return false;
    const { m, k, n, out } = job;
    const items = job.starts.length / 3;
    const by_columns = n > m;
    const whole = items || (by_columns ? n : m);
    const { run, part, pack, pack_items, multiply_items, copy_rows } = this.own;
    const id = ++this.last;
    let left = team.length;
    const done = (take) =>
      new Promise((resolve) => {
        const answer = (data) => {
          if (data) take(data);
          if (data && --left) return;
          this.jobs.delete(id);
          resolve(!!data);
        };
        // Timers count in 31 bits.
        answer.patience_ms = Math.min(PATIENCE_MS + (2 * m * k * n * Math.max(items, 1)) / 1e6, 2 ** 31 - 1);
        this.jobs.set(id, answer);
      });
    try {
      if (has_shared_memory()) {
        const shared = [job.a, job.b, job.c, out].map((array, i) => {
          if (ours.has(array.buffer)) return array;
          const copy = shared_array(array.length);
          if (i < 3) copy.set(array);
          return copy;
        });
        const [a, b, c, to] = shared;
        job = { ...job, a, b, c, out: to };
        // Each unit is a share of what is left, so that threads of any speed end together; but not so small that to bring B costs much.
        const panel = items ? 1 : 8;
        const brings = items || by_columns || k > job.depth || n > job.columns;
        const least = items ? 1 : brings ? Math.max(64, whole / threads / 4) : 16;
        const firsts = [0];
        for (let at = 0; at < whole; firsts.push(at)) at = Math.min(whole, at + Math.ceil(Math.max(least, (whole - at) / threads / 2) / panel) * panel);
        const units = { counter: new Int32Array(new SharedArrayBuffer(4)), by_columns, firsts };
        for (const worker of team) worker.postMessage({ id, job, units });
        const compute = () => {
          run(job, units);
          this.hear({ id });
        };
        const follows = this.jobs.size > 0;
        left++;
        const shares = done(() => left > 1 || to === out || out.set(to));
        // Of a queue of products the page hears in between what is done, and asks for more: so the workers always have something to do.
        if (follows) this.shares = this.shares.then(() => this.turn()).then(compute).catch((error) => this.fail(error.message));
        else compute();
        return shares;
      }
      const panel = items ? 1 : 8;
      const first = (thread) => Math.min(Math.ceil((whole * thread) / threads / panel) * panel, whole);
      const share = (thread) => part(job, by_columns, first(thread), first(thread + 1) - first(thread));
      team.forEach((worker, i) => {
        const { packed, buffers } = items ? pack_items(job, first(i + 1), first(i + 2) - first(i + 1)) : pack(share(i + 1));
        worker.postMessage({ id, at: first(i + 1), job: packed }, buffers);
      });
      if (items) {
        const shares = done(({ at, out: from }) => out.set(from, at * m * n));
        multiply_items(job, 0, first(1));
        return shares;
      }
      const shares = done(({ at, m, n, out: from }) => copy_rows(from, 0, n, out, at * (by_columns ? 1 : job.ldo), job.ldo, m, n));
      run(share(0));
      return shares;
    } catch (error) {
      this.fail(error.message);
    } finally {
      this.wait();
    }
  }
}
