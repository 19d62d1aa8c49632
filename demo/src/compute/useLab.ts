/** Ties the worker to React: one worker for the life of the page, its messages reduced into the state. */
import { useCallback, useEffect, useReducer, useRef } from "react";
import type { Settings } from "../bench/rows";
import type { Query } from "../bench/url";
import { Machine } from "../machine";
import { INITIAL, is_busy, reduce, type State } from "../state";
import { ComputeClient } from "./client";

/** Some browsers never say whether there is a GPU. After so long nobody need wait for that. */
const PATIENCE_MS = 10_000;

export interface Lab {
  state: State;
  run(settings: Settings): void;
  stop(): void;
  /** After a failure: a fresh worker and a fresh device. */
  retry(): void;
}

export function useLab(query: Query): Lab {
  const [state, dispatch] = useReducer(reduce, INITIAL);
  const client = useRef<ComputeClient | null>(null);
  /** What a fresh worker does first; after a stop that had to end the worker, nothing. */
  const first = useRef<"probe" | "run" | "nothing">("probe");

  const { phase } = state;
  const unanswered = useRef(false);
  useEffect(() => {
    unanswered.current = phase === "unanswered";
    if (phase !== "loading") return;
    const timer = setTimeout(() => dispatch({ kind: "unanswered" }), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [phase]);

  const run = useCallback((settings: Settings) => {
    first.current = "nothing";
    // An answer that comes after all would come in the middle of the run: a fresh worker was never asked.
    if (unanswered.current) client.current?.start();
    dispatch({ kind: "started", settings, hidden: document.hidden });
    client.current?.run(settings);
  }, []);

  const stop = useCallback(() => {
    dispatch({ kind: "stopping" });
    client.current?.stop();
  }, []);

  const retry = useCallback(() => {
    first.current = "probe";
    dispatch({ kind: "restarted" });
    client.current?.start();
  }, []);

  useEffect(() => {
    const machine = query.headless ? new Machine(query) : null;
    first.current = machine ? "run" : "probe";
    const lab = new ComputeClient((message) => {
      machine?.hear(message);
      if (message.kind === "finished" || message.kind === "failed") dispatch({ kind: "ended", at: new Date().toISOString() });
      dispatch(message);
      if (message.kind !== "ready") return;
      if (first.current === "run") run(query.settings);
      else if (first.current === "probe") lab.probe();
    });
    client.current = lab;
    lab.start();
    return () => lab.dispose();
  }, [query, run]);

  const busy = is_busy(state);
  useEffect(() => {
    if (!busy) return;
    const hidden = () => document.hidden && dispatch({ kind: "hidden" });
    document.addEventListener("visibilitychange", hidden);
    return () => document.removeEventListener("visibilitychange", hidden);
  }, [busy]);

  return { state, run, stop, retry };
}
