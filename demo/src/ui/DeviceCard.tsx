/** Which device the package chose and why, and why each other backend is not in use: half of what a bug report needs. */
import { KIND_LABELS, UNDISCLOSED, device_markdown, limit_lines } from "../bench/export";
import { BACKENDS, BACKEND_LABELS, adapter_name, type DeviceInfo } from "../bench/rows";
import { CopyButton } from "./CopyButton";

const STATES: Record<DeviceInfo["others"][number]["state"], string> = {
  available: "available",
  off: "off",
  untried: "not tried",
};

/** A reason that may begin with a backend's name, which has its own spelling. */
const spelled = (reason: string): string => {
  const named = BACKENDS.find((backend) => reason.startsWith(`${backend} `));
  return named ? BACKEND_LABELS[named] + reason.slice(named.length) : reason;
};

interface Props {
  device: DeviceInfo | null;
  /** Opened by the run: what is known of them beyond the chosen device's own account. */
  opened: readonly DeviceInfo[];
  /** Whether the browser is still asked for one. */
  asking: boolean;
}

export function DeviceCard({ device, opened, asking }: Props) {
  const missing = asking ? "Loading the WebAssembly module and asking the browser for a device…" : "No device has been opened. A run opens those that are chosen.";
  return (
    <section className="card device" aria-labelledby="device" aria-busy={device === null && asking}>
      <div className="card-head">
        <h2 id="device">Device</h2>
        {device && <CopyButton text={() => device_markdown(device)}>Copy as Markdown</CopyButton>}
      </div>
      {device ? <Details device={device} opened={opened} /> : <p className="muted">{missing}</p>}
    </section>
  );
}

function Details({ device, opened }: { device: DeviceInfo; opened: readonly DeviceInfo[] }) {
  const limits = limit_lines(device.limits);
  return (
    <>
      <p className="chosen">
        <strong>{BACKEND_LABELS[device.backend]}</strong>{" "}
        <span className={device.software ? "badge badge-warning" : "badge"}>{KIND_LABELS[device.kind]}</span>
      </p>
      <dl>
        <dt>Adapter</dt>
        <dd>{device.name || UNDISCLOSED}</dd>
        {device.vendor && (
          <>
            <dt>Vendor</dt>
            <dd>{device.vendor}</dd>
          </>
        )}
        {device.architecture && (
          <>
            <dt>Architecture</dt>
            <dd>{device.architecture}</dd>
          </>
        )}
        <dt>Why this one</dt>
        <dd className="sentence">{spelled(device.reason)}</dd>
        <dt>Features</dt>
        <dd>{device.features.join(", ") || "none"}</dd>
        {limits.length > 0 && (
          <>
            <dt>Limits</dt>
            <dd>
              <ul className="limits">
                {limits.map(([name, value]) => (
                  <li key={name}>
                    {name} <b>{value}</b>
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
        {device.generation > 1 && (
          <>
            <dt>Recovered</dt>
            <dd>{device.generation - 1} times from a lost device</dd>
          </>
        )}
      </dl>
      {device.others.length > 0 && <h3>Other backends</h3>}
      <ul className="others">
        {device.others.map((other) => {
          const found = opened.find(({ backend }) => backend === other.backend);
          return (
            <li key={other.backend}>
              <strong>{BACKEND_LABELS[other.backend]}</strong> <span className="badge">{found ? "opened for the run" : STATES[other.state]}</span>
              {found && <span className="why">{`${adapter_name(found) || `Name ${UNDISCLOSED}`}: ${KIND_LABELS[found.kind]}.`}</span>}
              {!(found && other.state === "untried") && <span className="why sentence">{spelled(other.reason)}</span>}
              {other.remedy && <span className="why">What would turn it on: {other.remedy}</span>}
            </li>
          );
        })}
      </ul>
    </>
  );
}
