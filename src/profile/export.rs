//! A profile for other programs: plain JSON, and the trace-event format that Perfetto and chrome://tracing open.
//!
//! The format: "Trace Event Format" of the Chromium project. Operations are complete events (`X`) on the lanes of a process, a device being a
//! process, and their parts are such events within them. What the device's clock gave is how long a part took; where on the line it
//! lies is the host's word.

use serde_json::{Value, json};

use super::{Operation, Phase, Profile};

/// Counts up when a field changes its meaning or goes; new ones may come.
const SCHEMA: u32 = 1;

fn phase_json(phase: &Phase) -> Value {
    json!({ "ms": phase.ms, "bytes": phase.bytes, "clock": clock(phase) })
}

fn clock(phase: &Phase) -> &'static str {
    if phase.device_clock { "device" } else { "host" }
}

fn operation_json(operation: &Operation) -> Value {
    json!({
        "name": operation.name,
        "size": operation.size,
        "backend": operation.backend.name(),
        "device": operation.device,
        "kernel": operation.kernel,
        "start_ms": operation.start_ms,
        "total_ms": operation.total_ms,
        "upload": phase_json(&operation.upload),
        "compute": phase_json(&operation.compute),
        "download": phase_json(&operation.download),
    })
}

/// A lane of a device, and when it is free.
struct Lane {
    process: usize,
    free_ms: f64,
}

/// What is placed in a trace: microseconds, as the format wants them.
fn event(name: &str, category: &str, place: (usize, usize), (start_ms, ms): (f64, f64), arguments: &Value) -> Value {
    let (process, lane) = place;
    json!({
        "name": name, "cat": category, "ph": "X", "pid": process + 1, "tid": lane + 1,
        "ts": start_ms * 1e3, "dur": ms * 1e3, "args": arguments,
    })
}

fn name_event(what: &str, place: (usize, usize), name: &str) -> Value {
    let (process, lane) = place;
    json!({ "name": what, "ph": "M", "pid": process + 1, "tid": lane + 1, "args": { "name": name } })
}

/// Where an operation's parts lie in it: the first from its start, the last up to its end, the kernel right before that.
fn parts(operation: &Operation) -> [(&'static str, &Phase, f64, f64); 3] {
    let Operation { total_ms, upload, compute, download, .. } = operation;
    let up_ms = upload.ms.min(*total_ms);
    let compute_ms = compute.ms.min(total_ms - up_ms);
    let down_ms = download.ms.min(total_ms - up_ms - compute_ms);
    let down_at = total_ms - down_ms;
    [("upload", upload, 0.0, up_ms), ("kernel", compute, down_at - compute_ms, compute_ms), ("download", download, down_at, down_ms)]
}

impl Profile {
    /// All that is known of each operation, with the number of the schema.
    pub fn to_json(&self) -> String {
        let operations: Vec<_> = self.operations.iter().map(operation_json).collect();
        let fields = json!({ "schema": SCHEMA, "version": env!("CARGO_PKG_VERSION"), "left_out": self.left_out, "operations": operations });
        format!("{fields:#}\n")
    }

    /// A trace: a file of this text opens in Perfetto (ui.perfetto.dev) and in chrome://tracing.
    pub fn to_trace(&self) -> String {
        let mut devices: Vec<String> = Vec::new();
        let mut lanes: Vec<Lane> = Vec::new();
        let (mut names, mut events) = (Vec::new(), Vec::new());
        let mut in_order: Vec<_> = self.operations.iter().collect();
        in_order.sort_by(|one, other| one.start_ms.total_cmp(&other.start_ms));
        for operation in in_order {
            let device = format!("{} {}", operation.backend, operation.device);
            let process = devices.iter().position(|known| *known == device).unwrap_or_else(|| {
                names.push(name_event("process_name", (devices.len(), 0), &device));
                devices.push(device);
                devices.len() - 1
            });
            // Operations that overlap lie on lanes of their own: on one they would have to be nested.
            let is_free = |lane: &Lane| lane.process == process && lane.free_ms <= operation.start_ms;
            let lane = lanes.iter().position(is_free).unwrap_or_else(|| {
                names.push(name_event("thread_name", (process, lanes.len()), "calls"));
                lanes.push(Lane { process, free_ms: 0.0 });
                lanes.len() - 1
            });
            lanes[lane].free_ms = operation.start_ms + operation.total_ms;
            let about =
                json!({ "kernel": operation.kernel, "bytes": operation.upload.bytes + operation.compute.bytes + operation.download.bytes });
            let label = format!("{} {}", operation.name, operation.size);
            events.push(event(&label, "operation", (process, lane), (operation.start_ms, operation.total_ms), &about));
            for (name, phase, at_ms, ms) in parts(operation) {
                if phase.bytes > 0 {
                    let about = json!({ "bytes": phase.bytes, "clock": clock(phase) });
                    events.push(event(name, "part", (process, lane), (operation.start_ms + at_ms, ms), &about));
                }
            }
        }
        names.append(&mut events);
        let about = json!({ "producer": concat!("lapidary ", env!("CARGO_PKG_VERSION")), "left_out": self.left_out });
        format!("{}\n", json!({ "displayTimeUnit": "ms", "otherData": about, "traceEvents": names }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn json_has_a_schema_and_every_part() {
        let value: Value = serde_json::from_str(&example().to_json()).unwrap();
        assert_eq!((&value["schema"], &value["left_out"]), (&1.into(), &0.into()));
        let first = &value["operations"][0];
        assert_eq!((&first["device"], &first["upload"]["clock"]), (&"a \"card\"".into(), &"host".into()));
        assert_eq!((&first["compute"]["bytes"], &first["compute"]["clock"]), (&12_000.into(), &"device".into()));
    }

    /// What the viewers need: every event has a place, those on a lane are nested or apart.
    #[test]
    fn events_of_a_trace_are_nested() {
        let value: Value = serde_json::from_str(&example().to_trace()).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let spans: Vec<_> = events
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| {
                let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                (event["tid"].as_u64().unwrap(), start, start + length)
            })
            .collect();
        assert_eq!(spans.len(), 3 * 4);
        for (at, one) in spans.iter().enumerate() {
            for other in &spans[..at] {
                let apart = one.0 != other.0 || one.1 >= other.2 || other.1 >= one.2;
                let nested = |inner: &(u64, f64, f64), outer: &(u64, f64, f64)| inner.1 >= outer.1 && inner.2 <= outer.2;
                assert!(apart || nested(one, other) || nested(other, one), "{one:?} {other:?}");
            }
        }
        // Two overlap, the third comes after them.
        let lanes: Vec<_> = spans.iter().map(|span| span.0).collect();
        assert_eq!((lanes.iter().min(), lanes.iter().max()), (Some(&1), Some(&2)));
        let named = events.iter().filter(|event| event["ph"] == "M").count();
        assert_eq!(named, 1 + 2);
    }
}
