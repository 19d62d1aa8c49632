/** What the page knows, and how each message changes it. The worker's messages are the actions, so nothing is said twice. */
import type { DeviceInfo, Failure, Row, Settings, Step } from "./bench/rows";
import type { FromWorker, Stage } from "./compute/messages";

export interface State {
  /** "unanswered" is a device that is still asked for, but has been for long. */
  phase: "loading" | "unanswered" | "idle" | "running" | "stopping";
  fault: { stage: Stage; error: Failure } | null;
  /** The device that the package chooses by itself. */
  chosen: DeviceInfo | null;
  /** Those opened for the run, one a backend. */
  devices: DeviceInfo[];
  rows: Row[];
  /** The settings of the run that the rows are of. */
  ran: Settings | null;
  step: Step | null;
  outcome: { stopped: boolean; seconds: number } | null;
  /** What ended the run that the rows are of, which `fault` says no longer once somebody has started afresh. */
  failure: Failure | null;
  /** When that run ended, in ISO 8601. */
  ended: string | null;
  /** The tab was in the background at some time of the run. */
  was_hidden: boolean;
}

export type Action =
  | FromWorker
  | { kind: "restarted" }
  | { kind: "unanswered" }
  | { kind: "started"; settings: Settings; hidden: boolean }
  | { kind: "stopping" }
  /** The run is about to end, as the next message says. */
  | { kind: "ended"; at: string }
  | { kind: "hidden" };

export const INITIAL: State = {
  phase: "loading",
  fault: null,
  chosen: null,
  devices: [],
  rows: [],
  ran: null,
  step: null,
  outcome: null,
  failure: null,
  ended: null,
  was_hidden: false,
};

export const is_busy = ({ phase }: State): boolean => phase === "running" || phase === "stopping";

export function reduce(state: State, action: Action): State {
  switch (action.kind) {
    case "restarted":
      return { ...state, phase: "loading", fault: null, chosen: null };
    case "unanswered":
      return { ...state, phase: "unanswered" };
    case "ready":
      return state;
    case "chosen":
      return { ...state, phase: "idle", chosen: action.device };
    case "started":
      return { ...INITIAL, phase: "running", chosen: state.chosen, ran: action.settings, was_hidden: action.hidden };
    case "stopping":
      return { ...state, phase: "stopping" };
    case "ended":
      return is_busy(state) ? { ...state, ended: action.at } : state;
    case "hidden":
      return { ...state, was_hidden: true };
    case "device":
      return { ...state, devices: [...state.devices, action.device] };
    case "step":
      return { ...state, step: action.step };
    case "row":
      return { ...state, rows: [...state.rows, action.row] };
    case "finished":
      return { ...state, phase: "idle", step: null, outcome: { stopped: action.stopped, seconds: action.seconds } };
    case "failed":
      return {
        ...state,
        phase: "idle",
        step: null,
        fault: { stage: action.stage, error: action.error },
        failure: is_busy(state) ? action.error : state.failure,
      };
  }
}
