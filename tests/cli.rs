//! The built command line: what it prints, what it refuses, and how it exits.
#![cfg(not(target_arch = "wasm32"))]

mod devices;
#[path = "cli/matmul.rs"]
mod matmul;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use devices::is_required;
use serde_json::Value;

/// Runs it with nothing of its environment variables but these.
fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    let options = [
        "BACKEND",
        "ADAPTER",
        "POWER_PREFERENCE",
        "POOL_BYTES",
        "VENDOR_LIBRARIES",
        "PIPELINE_CACHE",
        "WORKGROUP_HINT",
        "THREADS",
        "PROFILE",
    ];
    for name in options {
        command.env_remove(format!("LAPIDARY_{name}"));
    }
    command.args(arguments).envs(variables.iter().copied()).output().expect("it starts")
}

fn run(arguments: &[&str]) -> Output {
    run_with(arguments, &[])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it speaks UTF-8")
}

/// What it prints, if all is well.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn json(arguments: &[&str]) -> Value {
    let value: Value = serde_json::from_str(&printed(&[arguments, &["--json"]].concat())).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["command"], arguments[0]);
    value
}

/// What it says when it ends with this code; then nothing is on stdout.
#[track_caller]
fn refused(code: i32, arguments: &[&str]) -> String {
    refused_with(code, arguments, &[])
}

#[track_caller]
fn refused_with(code: i32, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run_with(arguments, variables);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty() && said.contains("lapidary: ") && !said.contains("panicked"), "{arguments:?}: {said}");
    said
}

const SMALL_BENCH: [&str; 7] = ["bench", "--shapes", "33x17x65,8x8x8", "--runs", "2", "--min-time", "1"];

#[test]
fn tables_fit_80_columns() {
    let mut all: Vec<Vec<&str>> = vec![vec!["--help"], vec!["backends"], vec!["devices"], vec!["default"], vec!["summary"], vec!["status"]];
    all.push([&SMALL_BENCH[..], &["--backend", "simd,scalar"]].concat());
    for arguments in all {
        let printed = printed(&arguments);
        assert!(!printed.is_empty());
        for line in printed.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
            assert!(!line.contains('\x1b'), "{arguments:?} colours");
        }
    }
}

#[test]
fn every_backend_has_a_state() {
    let value = json(&["backends"]);
    let backends = value["backends"].as_array().unwrap();
    let names: Vec<_> = backends.iter().map(|backend| backend["backend"].as_str().unwrap()).collect();
    assert_eq!(names, ["cuda", "vulkan", "webgpu", "webgl2", "simd", "scalar"]);
    for backend in backends {
        let is_off = backend["state"] == "off";
        assert_eq!((is_off, is_off), (backend["devices"] == 0, backend["reason"].is_string()), "{backend}");
    }
}

#[test]
fn devices_are_counted_and_belong_to_cards() {
    let value = json(&["devices"]);
    let devices = value["devices"].as_array().unwrap();
    let cpu: Vec<_> = devices.iter().filter(|device| device["kind"] == "cpu").collect();
    assert_eq!((cpu.len(), &cpu[0]["card"]), (2, &cpu[1]["card"]));
    for device in devices {
        assert!(device["index"].is_u64() && device["card"].is_u64() && device["name"].is_string(), "{device}");
        let only = json(&["devices", "--backend", device["backend"].as_str().unwrap()]);
        assert!(only["devices"].as_array().unwrap().iter().any(|same| same["index"] == device["index"] && same["name"] == device["name"]));
    }
}

#[test]
fn the_default_is_told_with_its_reason() {
    let value = json(&["default", "--backend", "cpu"]);
    assert_eq!((&value["backend"], &value["standing"], &value["reason"]), (&"simd".into(), &"fallback".into(), &"asked for".into()));
    assert_eq!(value["others"].as_array().unwrap().len(), 5);
    let value = json(&["summary"]);
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    let standing = &value["default"]["standing"];
    assert!(standing == "native" || standing == "fallback");
    assert_eq!(value["gpus"] == 0, standing == "fallback", "{value}");
}

/// On one processor, where there is a tool to be on one.
#[test]
#[cfg(target_os = "linux")]
fn one_thread_is_told_as_one() {
    let arguments = ["-c", "0", env!("CARGO_BIN_EXE_lapidary"), "summary"];
    let Some(output) = Command::new("taskset").args(arguments).output().ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: taskset cannot be used");
        return;
    };
    let said = text(&output.stdout);
    assert!(said.contains(", 1 thread, ") && !said.contains(" 1 GPUs"), "{said}");
}

/// Also of every GPU backend that there is; one that is missing is said by name, and a failure if it is required.
#[test]
fn every_device_passes_its_self_test() {
    let value = json(&["status"]);
    let devices = value["devices"].as_array().unwrap();
    assert!(devices.iter().all(|device| device["self_test"]["right"] == true || device["fault"].is_string()), "{value}");
    for backend in ["cuda", "vulkan", "webgpu", "simd", "scalar"] {
        if !devices.iter().any(|device| device["backend"] == backend && device["self_test"]["right"] == true) {
            assert!(!is_required(backend), "required: {backend}");
            eprintln!("skipped {backend}");
        }
    }
}

#[test]
fn a_bench_has_times_rates_and_a_verdict() {
    let value = json(&[&SMALL_BENCH[..], &["--backend", "simd,scalar", "--seed", "7", "--warmup", "0"]].concat());
    assert_eq!((&value["settings"]["seed"], &value["settings"]["runs"]), (&7.into(), &2.into()));
    let results = value["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for (result, (backend, m)) in results.iter().zip([("simd", 33), ("scalar", 33), ("simd", 8), ("scalar", 8)]) {
        assert_eq!((&result["backend"], &result["m"]), (&backend.into(), &m.into()));
        assert_eq!((&result["verdict"]["right"], &result["verdict"]["judged_rows"]), (&true.into(), &result["verdict"]["rows"]));
        for kind in ["resident", "end_to_end"] {
            assert_eq!(result[kind]["samples_ms"].as_array().unwrap().len(), 2);
        }
        assert!(result["end_to_end"]["gflops"].as_f64().unwrap() > 0.0);
        assert!(["fma_gflops", "copy_gbs"].iter().all(|best| result["ceilings"][best].as_f64().unwrap() > 0.0), "{result}");
    }
    let value = json(&["bench", "--shapes", "600x600x600", "--backend", "simd", "--runs", "1", "--min-time", "0"]);
    let verdict = &value["results"][0]["verdict"];
    assert_eq!((&verdict["judged_rows"], &verdict["rows"], &verdict["right"]), (&16.into(), &600.into(), &true.into()));
    let value = json(&[&SMALL_BENCH[..], &["--backend", "simd,scalar", "--dtype", "f16"]].concat());
    assert_eq!(value["settings"]["dtype"], "f16");
    for result in value["results"].as_array().unwrap() {
        assert_eq!(result["verdict"]["right"], true, "{result}");
    }
    let value = json(&[&SMALL_BENCH[..], &["--backend", "simd", "--verify", "none"]].concat());
    assert!(value["results"][0]["verdict"]["right"].is_null());
}

#[test]
fn a_shape_that_does_not_fit_leaves_the_others_measured() {
    let side = u32::MAX.to_string();
    let shapes = format!("8x8x8,{side}x{side}x{side},4x4x4");
    let output = run_with(&["bench", "--shapes", &shapes, "--backend", "simd", "--runs", "1", "--min-time", "0", "--json"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = value["results"].as_array().unwrap();
    assert!(results[1]["error"].as_str().unwrap().contains("more than memory holds"), "{value}");
    assert!([0, 2].iter().all(|&at| results[at]["verdict"]["right"] == true), "{value}");
    assert!(text(&output.stderr).ends_with("lapidary: 1 product failed\n"), "{}", text(&output.stderr));
    let shapes = [&shapes; 2].map(String::as_str).join(",");
    let said = text(&run(&["bench", "--shapes", &shapes, "--backend", "simd", "--runs", "1", "--min-time", "0"]).stderr);
    assert!(said.ends_with("lapidary: 2 products failed\n"), "{said}");
}

/// A folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    folder
}

#[test]
fn a_bench_is_exported_in_three_formats() {
    let folder = folder("export");
    let export = |name: &str| {
        let path = folder.join(name);
        printed(&[&SMALL_BENCH[..], &["--backend", "simd", "--dtype", "f16", "--export", path.to_str().unwrap()]].concat());
        std::fs::read_to_string(path).unwrap()
    };
    let value: Value = serde_json::from_str(&export("bench.json")).unwrap();
    assert_eq!((&value["schema"], value["results"].as_array().unwrap().len()), (&1.into(), 2));
    let csv = export("bench.csv");
    assert!(csv.starts_with("backend,adapter,device,m,k,n,dtype,kernel,resident_ms,") && csv.lines().count() == 3, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",65,f16,") || line.contains(",8,f16,")), "{csv}");
    let markdown = export("bench.md");
    assert!(markdown.starts_with("| backend | ") && markdown.lines().count() == 4, "{markdown}");
    assert!(markdown.lines().skip(2).all(|line| line.contains(" | f16 | ")), "{markdown}");
    refused(2, &["bench", "--export", "bench.txt"]);
}

#[test]
fn a_trace_holds_every_product() {
    let path = folder("trace").join("trace.json");
    printed(&[&SMALL_BENCH[..], &["--backend", "simd,scalar", "--trace", path.to_str().unwrap()]].concat());
    let value: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name && event["ph"] == "X").count();
    assert_eq!((count("matmul 33x17x65"), count("matmul 8x8x8"), count("kernel")), (4, 4, 8));
}

#[test]
fn tuning_is_kept_and_cleared() {
    let folder = folder("tune");
    let cache: &[(&str, &str)] = &[("LAPIDARY_PIPELINE_CACHE", folder.to_str().unwrap())];
    assert!(refused_with(3, &["tune", "--backend", "simd"], cache).contains("nothing to tune"));
    let output = run_with(&["tune", "--backend", "vulkan", "--json"], cache);
    if output.status.code() == Some(3) {
        assert!(!is_required("vulkan"), "required: {}", text(&output.stderr));
        eprintln!("skipped vulkan: {}", text(&output.stderr));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let trials = value["trials"].as_array().unwrap();
    assert!(trials.len() > 4 && trials.iter().all(|trial| trial["ms"].as_f64().is_some_and(|ms| ms >= 0.0)), "{value}");
    let file = PathBuf::from(value["file"].as_str().unwrap());
    assert!(file.starts_with(&folder) && file.exists());
    let table = run_with(&["tune", "--backend", "vulkan"], cache);
    assert!(text(&table.stdout).lines().all(|line| line.chars().count() <= 80), "{}", text(&table.stdout));
    let cleared = run_with(&["tune", "--backend", "vulkan", "--clear"], cache);
    assert!(cleared.status.code() == Some(0) && text(&cleared.stdout).starts_with("removed ") && !file.exists());
    assert_eq!(text(&run_with(&["tune", "--backend", "vulkan", "--clear"], cache).stdout), "nothing was tuned\n");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    assert!(refused(2, &[]).contains("a command is missing"));
    assert!(refused(2, &["polish"]).contains("there is no command polish"));
    assert!(refused(2, &["devices", "--backend", "opencl"]).contains("there is no backend opencl"));
    assert!(refused(2, &["status", "--backend", "all"]).contains("there is no backend all"));
    assert!(refused(2, &["default", "--backend", "simd,scalar"]).contains("only bench takes several"));
    assert!(refused(2, &["default", "--adapter", "0"]).contains("it takes a backend to count in"));
    assert!(refused(2, &["devices", "--sizes", "5"]).contains("--sizes"));
    assert!(refused(2, &["backends", "--adapter", "0"]).contains("--adapter is of one backend"));
    assert!(refused(2, &["bench", "--backend", "all", "--adapter", "0"]).contains("--adapter is of one backend"));
    for wrong in [
        &["--sizes", "5,x"][..],
        &["--sizes", "-5"],
        &["--sizes"],
        &["--shapes", "5x5"],
        &["--runs", "0"],
        &["--min-time", "NaN"],
        &["--seed", "1.5"],
        &["--verify", "some"],
        &["--dtype", "f8"],
        &["--adapter", "-1", "--backend", "simd"],
        &["--backend", ""],
        &["--colour"],
        &["again"],
    ] {
        refused(2, &[&["bench"], wrong].concat());
    }
    for (option, value, said) in [
        ("--warmup", "-1", "--warmup is -1, but it must be a whole number from 0 to 4294967295"),
        ("--seed", "1.5", "--seed is 1.5, but it must be a whole number from 0 to 18446744073709551615"),
        ("--adapter", "x", "--adapter is x, but it must be a whole number from 0 to 4294967295"),
        ("--runs", "x", "--runs is x, but it must be a whole number from 1 to 1000"),
        ("--runs", "1001", "--runs is 1001, but it must be a whole number from 1 to 1000"),
        ("--runs", "", "--runs is empty, but it must be a whole number from 1 to 1000"),
        ("--min-time", "NaN", "--min-time is NaN, but it must be a number from 0 to 60000"),
        ("--sizes", "5,", "--sizes has an empty entry, but each must be a whole number from 0 to 18446744073709551615"),
        ("--sizes", "5,x", "--sizes has x, but each must be a whole number from 0 to 18446744073709551615"),
        ("--shapes", "5x5", "--shapes has 5x5, but each must be MxKxN, of whole numbers from 0 to 18446744073709551615"),
        ("--backend", "simd,", "--backend has an empty entry, but each must be a name"),
    ] {
        let refusal = refused(2, &["bench", option, value]);
        assert!(refusal.contains(&format!("lapidary: {said}\n")), "{refusal}");
    }
    assert!(refused(2, &["bench", "--clear"]).contains("--clear"));
    assert!(refused(2, &["devices", "--profile"]).contains("--profile"));
    assert!(refused(2, &["devices", "--trace", "a.json"]).contains("--trace"));
    for wrong in [&["a.npy", "b.npy"][..], &["a.npy", "-o", "c.npy"], &["a.npy", "b.npy", "c.npy", "-o", "d.npy"]] {
        refused(2, &[&["matmul"], wrong].concat());
    }
    assert!(
        refused_with(2, &["default"], &[("LAPIDARY_BACKEND", "opencl")]).contains("LAPIDARY_BACKEND is opencl, but it must be auto, cpu")
    );
    assert!(refused_with(2, &["default"], &[("LAPIDARY_THREADS", "0")]).contains("LAPIDARY_THREADS is 0, but it must be a whole number"));
    assert!(printed(&["bench", "--help"]).contains("--min-time"));
    assert_eq!(printed(&["--version"]), format!("lapidary {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_device_that_is_not_there_ends_with_3() {
    assert!(refused(3, &["default", "--backend", "webgl2"]).contains("WebGL2 is the browser's"));
    assert!(
        refused(3, &["default", "--backend", "simd", "--adapter", "1"])
            .contains("there is no adapter 1: adapters are counted from 0, and it has 1")
    );
    assert!(refused(3, &["bench", "--backend", "vulkan", "--adapter", "99"]).contains("vulkan is not available: "));
    assert!(refused(3, &["status", "--backend", "webgl2"]).contains("WebGL2 is the browser's"));
    assert!(refused(3, &["devices", "--backend", "webgl2"]).contains("WebGL2 is the browser's"));
    assert!(refused(3, &["devices", "--backend", "simd", "--adapter", "7"]).contains("there is no adapter 7"));
    // Whatever backend is off has nothing to do with it.
    assert!(refused(3, &["status", "--adapter", "99"]).contains("there is no adapter 99"));
    assert!(refused(3, &["status", "--backend", "simd", "--adapter", "5"]).contains("there is no adapter 5"));
    refused_with(3, &["default"], &[("LAPIDARY_BACKEND", "simd"), ("LAPIDARY_ADAPTER", "7")]);
}

/// What is broken is off, with the reason and what to do; it takes nothing else with it.
#[test]
#[cfg(target_os = "linux")]
fn a_broken_driver_is_off_with_its_reason() {
    let folder = folder("drivers");
    for library in ["libvulkan.so.1", "libvulkan.so", "libcuda.so.1", "libcuda.so"] {
        std::fs::write(folder.join(library), "not a library").unwrap();
    }
    let icd = folder.join("icd.json");
    let driver = folder.join("libvulkan.so.1");
    let about = serde_json::json!({ "file_format_version": "1.0.0", "ICD": { "library_path": driver, "api_version": "1.3.0" } });
    std::fs::write(&icd, about.to_string()).unwrap();
    let (libraries, icd, missing) = (folder.to_str().unwrap(), icd.to_str().unwrap(), folder.join("missing.json"));
    let missing = missing.to_str().unwrap();
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("vulkan", &[("LD_LIBRARY_PATH", libraries)]),
        ("cuda", &[("LD_LIBRARY_PATH", libraries)]),
        ("vulkan", &[("VK_DRIVER_FILES", icd), ("VK_ICD_FILENAMES", icd)]),
        ("vulkan", &[("VK_DRIVER_FILES", missing), ("VK_ICD_FILENAMES", missing)]),
    ];
    for (backend, variables) in cases {
        let output = run_with(&["backends", "--json"], variables);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let states = value["backends"].as_array().unwrap();
        let of = |name: &str| states.iter().find(|state| state["backend"] == name).unwrap();
        let (off, cpu) = (of(backend), of("simd"));
        assert_eq!((&off["state"], &cpu["state"]), (&"off".into(), &"on".into()), "{variables:?}");
        assert!(off["reason"].as_str().is_some_and(|reason| reason.len() > 10) && off["remedy"].is_string(), "{off}");
        assert!(refused_with(3, &["default", "--backend", backend], variables).contains("is not available"), "{variables:?}");
        let default = run_with(&["default", "--json"], variables);
        assert_eq!(default.status.code(), Some(0), "{}", text(&default.stderr));
    }
}

#[test]
fn an_option_goes_before_the_environment() {
    let told = |variables: &[(&str, &str)]| {
        let output = run_with(&["default", "--json", "--backend", "scalar"], variables);
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["backend"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(&[("LAPIDARY_BACKEND", "simd"), ("LAPIDARY_ADAPTER", "9")]), "scalar");
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_fault() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    let mut child = child.args(["devices", "--json", "--backend", "cpu"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_hides_no_fault() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    command.args(["bench", "--backend", "simd", "--shapes", "4294967295x4294967295x4294967295"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 product failed"), "{}", text(&output.stderr));
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_takes_no_file_with_it() {
    let folder = folder("unread");
    let files = ["bench.json", "trace.json"].map(|name| folder.join(name));
    for file in &files {
        let _ = std::fs::remove_file(file);
    }
    let [export, trace] = files.each_ref().map(|file| file.to_str().unwrap());
    for form in [&["--json"][..], &[]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
        command.args(SMALL_BENCH).args(["--backend", "simd", "--export", export, "--trace", trace]).args(form);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{form:?}: {}", text(&output.stderr));
        for file in &files {
            let written = std::fs::read(file).unwrap_or_else(|error| panic!("{form:?}: {}: {error}", file.display()));
            serde_json::from_slice::<Value>(&written).expect("JSON");
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_computed() {
    let folder = folder("nowhere");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let [csv, json, npy, missing] = ["no/such/a.csv", "no/such/a.json", "no/such/a.npy", "missing.npy"].map(file);
    for (option, file) in [("--export", &csv), ("--trace", &json)] {
        assert!(refused(1, &[&SMALL_BENCH[..], &["--backend", "simd", option, file]].concat()).contains(file.as_str()));
    }
    // There are no operands to compute with.
    for out in [&npy, &file(""), &file("c.npy/")] {
        assert!(refused(1, &["matmul", &missing, &missing, "-o", out]).contains(out.as_str()));
    }
    assert!(refused(1, &["matmul", &missing, &missing, "-o", ""]).contains("lapidary: : "));
    assert!(refused(1, &["matmul", &missing, &missing, "-o", &file("c.npy"), "--trace", &json]).contains(json.as_str()));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is left of what was tried");
}

#[test]
#[cfg(target_os = "linux")]
fn what_was_measured_is_printed_though_its_files_find_no_room() {
    let folder = folder("full");
    let [export, trace] = ["bench.csv", "trace.json"].map(|name| folder.join(name));
    for file in [&export, &trace] {
        let _ = std::fs::remove_file(file);
        std::os::unix::fs::symlink("/dev/full", file).unwrap();
    }
    for (option, file) in [("--export", export), ("--trace", trace)] {
        let output = run(&[&SMALL_BENCH[..], &["--backend", "simd", option, file.to_str().unwrap()]].concat());
        assert!(output.status.code() == Some(1) && !output.stdout.is_empty(), "{option}: {}", text(&output.stderr));
        assert!(file.is_symlink());
    }
}
