//! The command line, read strictly: what a command does not know is refused by name.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use lapidary::{Choice, DType, Options, PowerPreference};
use lexopt::prelude::*;
use lexopt::{Arg, Parser};

use crate::export::Format;
use crate::failure::Failure;
use crate::judge::Extent;

const HELP: &str = "\
What this machine computes matrix products on, how fast, and products of files.

usage: lapidary COMMAND [OPTION ...]

  backends     each backend: on or off, and what would turn it on
  devices      each device of each backend, and which of them are the same card
  default      the device that is taken when none is asked for, and why
  summary      all of that in a few lines
  status       versions, and a small product on each device, judged
  bench        how fast products are
  tune         measures the kernel's shapes on a GPU, and keeps what is faster
               than the defaults for later processes; --clear forgets it
  matmul A.npy B.npy -o C.npy
               the product of two matrices of NumPy (f16, f32 or f64), in f32

  --backend NAME           auto, cpu, cuda, vulkan, webgpu, simd or scalar;
                           bench takes several, by commas, and all
  --adapter INDEX          that device of the backend, as `devices` counts
  --power-preference NAME  high-performance or low-power
  --json                   data instead of tables
  --trace FILE             bench, matmul: what each product took, part by part,
                           as Perfetto and chrome://tracing open it
  --profile                matmul: the same as a table
  -h, --help; -V, --version

bench:
  --sizes N,...            square products; 256,512,1024 if nothing is said
  --shapes MxKxN,...       others
  --dtype NAME             f32 or f16: of the operands; the result is f32 (f32)
  --warmup COUNT           products before those that count (1)
  --runs COUNT             samples, of which the median is told (7)
  --min-time MS            the least that a run takes where operands and result
                           stay on the device (50)
  --seed NUMBER            of the matrices' values (1)
  --verify WHAT            auto: every element, of large products 16 rows; all;
                           none
  --export FILE            .json, .csv or .md

Where no option says it, the variables LAPIDARY_BACKEND, LAPIDARY_ADAPTER and
LAPIDARY_POWER_PREFERENCE do. LAPIDARY_POOL_BYTES, LAPIDARY_VENDOR_LIBRARIES,
LAPIDARY_VALIDATION, LAPIDARY_PIPELINE_CACHE, LAPIDARY_WORKGROUP_HINT,
LAPIDARY_THREADS and LAPIDARY_PROFILE set what has no option. Exit codes: 0; 1
for a wrong result or a failure; 2 for a wrong command line; 3 where the device
asked for is not there.
";

/// What all commands know.
#[derive(Debug)]
pub struct Common {
    pub json: bool,
    pub options: Options,
}

/// What is measured, and how.
#[derive(Debug)]
pub struct Bench {
    /// Empty for the one that the options choose.
    pub backends: Vec<Choice>,
    /// Every device that there is, in place of those.
    pub all: bool,
    pub shapes: Vec<[u64; 3]>,
    pub warmup: u32,
    pub runs: u32,
    pub min_ms: f64,
    pub seed: u64,
    /// Of the operands.
    pub dtype: DType,
    pub verify: Extent,
    pub export: Option<(PathBuf, Format)>,
    pub trace: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Files {
    pub a: PathBuf,
    pub b: PathBuf,
    pub out: PathBuf,
    /// Whether the parts of the product are told.
    pub profile: bool,
    pub trace: Option<PathBuf>,
}

pub enum Command {
    Print(String),
    Backends(Common),
    Devices(Common),
    Default(Common),
    Summary(Common),
    Status(Common),
    Bench(Common, Bench),
    /// And whether what was tuned is to be forgotten.
    Tune(Common, bool),
    Matmul(Common, Files),
}

/// Everything that may stand on the command line, as far as it does.
#[derive(Default)]
struct Given {
    command: Option<String>,
    json: bool,
    backend: Option<String>,
    adapter: Option<u32>,
    power_preference: Option<String>,
    shapes: Vec<[u64; 3]>,
    warmup: Option<u32>,
    runs: Option<u32>,
    min_ms: Option<f64>,
    seed: Option<u64>,
    dtype: Option<DType>,
    verify: Option<Extent>,
    export: Option<(PathBuf, Format)>,
    trace: Option<PathBuf>,
    profile: bool,
    clear: bool,
    files: Vec<PathBuf>,
    out: Option<PathBuf>,
}

const COMMANDS: [&str; 8] = ["backends", "devices", "default", "summary", "status", "bench", "tune", "matmul"];

/// Reads the command line, and the environment for what it leaves open.
pub fn parse() -> Result<Command, Failure> {
    let mut given = Given::default();
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        let command = given.command.as_deref();
        match argument {
            Long("help") | Short('h') => return Ok(Command::Print(HELP.to_owned())),
            Long("version") | Short('V') => return Ok(Command::Print(format!("lapidary {}\n", env!("CARGO_PKG_VERSION")))),
            Long("json") => given.json = true,
            Long("backend") => given.backend = Some(parser.value()?.string()?),
            Long("adapter") => given.adapter = Some(whole(&mut parser, "--adapter", 0, u32::MAX)?),
            Long("power-preference") => given.power_preference = Some(parser.value()?.string()?),
            Long("sizes") if command == Some("bench") => {
                let kind = format!("a whole number from 0 to {}", u64::MAX);
                let sizes: Vec<u64> = list(&parser.value()?.string()?, "--sizes", &kind, |size| size.parse().ok())?;
                given.shapes.extend(sizes.into_iter().map(|n| [n; 3]));
            }
            Long("shapes") if command == Some("bench") => {
                let kind = format!("MxKxN, of whole numbers from 0 to {}", u64::MAX);
                given.shapes.extend(list(&parser.value()?.string()?, "--shapes", &kind, shape)?);
            }
            Long("warmup") if command == Some("bench") => given.warmup = Some(whole(&mut parser, "--warmup", 0, u32::MAX)?),
            Long("runs") if command == Some("bench") => given.runs = Some(whole(&mut parser, "--runs", 1, 1000)?),
            Long("min-time") if command == Some("bench") => {
                given.min_ms = Some(within(&mut parser, "--min-time", "a number", 0.0, 60_000.0)?)
            }
            Long("seed") if command == Some("bench") => given.seed = Some(whole(&mut parser, "--seed", 0, u64::MAX)?),
            Long("dtype") if command == Some("bench") => given.dtype = Some(dtype(&parser.value()?.string()?)?),
            Long("verify") if command == Some("bench") => given.verify = Some(extent(&parser.value()?.string()?)?),
            Long("export") if command == Some("bench") => given.export = Some(export(parser.value()?.into())?),
            Long("trace") if matches!(command, Some("bench" | "matmul")) => given.trace = Some(parser.value()?.into()),
            Long("clear") if command == Some("tune") => given.clear = true,
            Long("profile") if command == Some("matmul") => given.profile = true,
            Long("out") | Short('o') if command == Some("matmul") => given.out = Some(parser.value()?.into()),
            Value(name) if command.is_none() => {
                let name = name.string()?;
                if !COMMANDS.contains(&name.as_str()) {
                    return Err(Failure::Usage(format!("there is no command {name}")));
                }
                given.command = Some(name);
            }
            Value(file) if command == Some("matmul") && given.files.len() < 2 => given.files.push(file.into()),
            Arg::Long(_) | Arg::Short(_) | Arg::Value(_) => return Err(argument.unexpected().into()),
        }
    }
    given.command()
}

impl Given {
    fn command(self) -> Result<Command, Failure> {
        let several = self.command.as_deref() == Some("bench");
        let mut options = Options::from_env()?;
        let (mut backends, mut all) = (Vec::new(), false);
        if let Some(names) = &self.backend {
            for name in names.split(',') {
                match Choice::from_name(name) {
                    Some(choice) => backends.push(choice),
                    None if several && name == "all" => all = true,
                    None if name.is_empty() => {
                        return Err(Failure::Usage("--backend has an empty entry, but each must be a name".to_owned()));
                    }
                    None => return Err(Failure::Usage(format!("there is no backend {name}"))),
                }
            }
            if backends.len() > 1 && !several {
                return Err(Failure::Usage(format!("--backend is {names}, but only bench takes several")));
            }
            if let Some(&first) = backends.first() {
                options.backend = first;
            }
            // An index is of the backend that it came with.
            options.adapter = None;
        }
        if self.adapter.is_some() && (all || backends.len() > 1 || self.command.as_deref() == Some("backends")) {
            return Err(Failure::Usage("--adapter is of one backend, but all are asked for".to_owned()));
        }
        options.adapter = self.adapter.or(options.adapter);
        if let Some(name) = &self.power_preference {
            let known = PowerPreference::from_name(name);
            options.power_preference = known.ok_or_else(|| Failure::Usage(format!("there is no power preference {name}")))?;
        }
        let common = Common { json: self.json, options };
        Ok(match self.command.as_deref() {
            Some("backends") => Command::Backends(common),
            Some("devices") => Command::Devices(common),
            Some("default") => Command::Default(common),
            Some("summary") => Command::Summary(common),
            Some("status") => Command::Status(common),
            Some("bench") => {
                let shapes = if self.shapes.is_empty() { [256, 512, 1024].map(|n| [n; 3]).to_vec() } else { self.shapes };
                let settings = Bench {
                    backends,
                    all,
                    shapes,
                    warmup: self.warmup.unwrap_or(1),
                    runs: self.runs.unwrap_or(7),
                    min_ms: self.min_ms.unwrap_or(50.0),
                    seed: self.seed.unwrap_or(1),
                    dtype: self.dtype.unwrap_or(DType::F32),
                    verify: self.verify.unwrap_or(Extent::Auto),
                    export: self.export,
                    trace: self.trace,
                };
                Command::Bench(common, settings)
            }
            Some("tune") => Command::Tune(common, self.clear),
            Some("matmul") => {
                let wanted = || Failure::Usage("matmul takes two files, and -o with a third".to_owned());
                let [a, b] = <[PathBuf; 2]>::try_from(self.files).map_err(|_| wanted())?;
                let out = self.out.ok_or_else(wanted)?;
                Command::Matmul(common, Files { a, b, out, profile: self.profile, trace: self.trace })
            }
            _ => return Err(Failure::Usage("a command is missing".to_owned())),
        })
    }
}

/// Values parted by commas.
fn list<T>(text: &str, option: &str, kind: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
    let wrong = |part: &str| {
        let part = if part.is_empty() { "an empty entry" } else { part };
        Failure::Usage(format!("{option} has {part}, but each must be {kind}"))
    };
    text.split(',').map(|part| read(part).ok_or_else(|| wrong(part))).collect()
}

/// A number of a kind from `least` to `most`.
fn within<T: FromStr + PartialOrd + Display>(parser: &mut Parser, option: &str, kind: &str, least: T, most: T) -> Result<T, Failure> {
    let text = parser.value()?.string()?;
    let value = text.parse().ok().filter(|value| (&least..=&most).contains(&value));
    value.ok_or_else(|| {
        let text = if text.is_empty() { "empty" } else { &text };
        Failure::Usage(format!("{option} is {text}, but it must be {kind} from {least} to {most}"))
    })
}

fn whole<T: FromStr + PartialOrd + Display>(parser: &mut Parser, option: &str, least: T, most: T) -> Result<T, Failure> {
    within(parser, option, "a whole number", least, most)
}

fn shape(text: &str) -> Option<[u64; 3]> {
    let sides: Option<Vec<u64>> = text.split('x').map(|side| side.parse().ok()).collect();
    sides?.try_into().ok()
}

fn dtype(name: &str) -> Result<DType, Failure> {
    DType::from_name(name)
        .filter(|dtype| dtype.is_float())
        .ok_or_else(|| Failure::Usage(format!("--dtype is {name}, but it must be f32 or f16")))
}

fn extent(name: &str) -> Result<Extent, Failure> {
    match name {
        "auto" => Ok(Extent::Auto),
        "all" => Ok(Extent::All),
        "none" => Ok(Extent::None),
        _ => Err(Failure::Usage(format!("--verify is {name}, but it must be auto, all or none"))),
    }
}

fn export(path: PathBuf) -> Result<(PathBuf, Format), Failure> {
    match Format::of(&path) {
        Some(format) => Ok((path, format)),
        None => Err(Failure::Usage(format!("--export is {}, but it must end in .json, .csv or .md", path.display()))),
    }
}
