//! Options from environment variables. Only [`Options::from_env`] reads them, but for `LAPIDARY_VALIDATION`, which Vulkan heeds whoever opens
//! it: a library must not change what a program does behind its back.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::info::BackendId;
use crate::options::{Choice, Options, PipelineCache, PowerPreference};

impl Options {
    /// The options that the environment states, the rest as by default. A variable that is empty counts as not set.
    ///
    /// | variable | value |
    /// |---|---|
    /// | `LAPIDARY_BACKEND` | `auto`, `cpu`, or a backend's name |
    /// | `LAPIDARY_ADAPTER` | the index of a device in that backend |
    /// | `LAPIDARY_POWER_PREFERENCE` | `high-performance` or `low-power` |
    /// | `LAPIDARY_POOL_BYTES` | bytes of free device buffers kept for reuse |
    /// | `LAPIDARY_VENDOR_LIBRARIES` | `1` or `0` |
    /// | `LAPIDARY_VALIDATION` | `1` or `0` |
    /// | `LAPIDARY_PIPELINE_CACHE` | `on`, `off`, or a folder's path |
    /// | `LAPIDARY_WORKGROUP_HINT` | the most invocations of a workgroup |
    /// | `LAPIDARY_THREADS` | the most threads of the CPU |
    /// | `LAPIDARY_PROFILE` | `1` or `0` |
    ///
    /// # Errors
    /// [`Error::InvalidOption`] for a value that the variable cannot have.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let mut options = Self::default();
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let read = |name: &'static str| set(name).map(|value| value.to_string_lossy().into_owned());
        if let Some(value) = read("LAPIDARY_BACKEND") {
            options.backend = Choice::from_name(&value).ok_or_else(|| invalid("LAPIDARY_BACKEND", &value, &Choice::expected()))?;
        }
        if let Some(value) = read("LAPIDARY_ADAPTER") {
            options.adapter = Some(number("LAPIDARY_ADAPTER", &value, "the index of a device, counted from 0")?);
        }
        if let Some(value) = read("LAPIDARY_POWER_PREFERENCE") {
            let expected = "it must be high-performance or low-power";
            let known = PowerPreference::from_name(&value);
            options.power_preference = known.ok_or_else(|| invalid("LAPIDARY_POWER_PREFERENCE", &value, expected))?;
        }
        if let Some(value) = read("LAPIDARY_POOL_BYTES") {
            options.pool_bytes = number("LAPIDARY_POOL_BYTES", &value, "a whole number of bytes")?;
        }
        if let Some(value) = read("LAPIDARY_VENDOR_LIBRARIES") {
            options.vendor_libraries = switch("LAPIDARY_VENDOR_LIBRARIES", &value)?;
        }
        if let Some(value) = read("LAPIDARY_VALIDATION") {
            options.validation = switch("LAPIDARY_VALIDATION", &value)?;
        }
        if let Some(value) = set("LAPIDARY_PIPELINE_CACHE") {
            options.pipeline_cache = PipelineCache::from_name(value);
        }
        if let Some(value) = read("LAPIDARY_WORKGROUP_HINT") {
            options.workgroup_hint = Some(count("LAPIDARY_WORKGROUP_HINT", &value)?);
        }
        if let Some(value) = read("LAPIDARY_THREADS") {
            options.threads = Some(count("LAPIDARY_THREADS", &value)?);
        }
        if let Some(value) = read("LAPIDARY_PROFILE") {
            options.profile = switch("LAPIDARY_PROFILE", &value)?;
        }
        Ok(options)
    }
}

fn invalid(variable: &str, value: &str, expected: &str) -> Error {
    Error::InvalidOption { option: variable.to_owned(), value: value.to_owned(), expected: expected.to_owned() }
}

fn number<T: FromStr>(variable: &str, value: &str, what: &str) -> Result<T> {
    value.parse().map_err(|_| invalid(variable, value, &format!("it must be {what}")).into())
}

fn count(variable: &str, value: &str) -> Result<u32> {
    number::<NonZeroU32>(variable, value, "a whole number from 1").map(u32::from)
}

fn switch(variable: &str, value: &str) -> Result<bool> {
    match value {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(invalid(variable, value, "it must be 1 or 0").into()),
    }
}

impl PipelineCache {
    /// `on`, `off`, or else the folder of that path.
    pub fn from_name(name: impl Into<OsString>) -> Self {
        let name = name.into();
        match name.to_str() {
            Some("on") => Self::On,
            Some("off") => Self::Off,
            _ => Self::Folder(name.into()),
        }
    }
}

impl Choice {
    fn expected() -> String {
        let names: Vec<_> = BackendId::ALL.iter().map(|backend| backend.name()).collect();
        format!("it must be auto, cpu, or one of {}", names.join(", "))
    }
}

#[cfg(test)]
#[path = "../tests/devices/required.rs"]
mod required;
#[cfg(test)]
pub(crate) use required::is_required;

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Options> {
        Options::from_variables(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn each_variable_sets_its_option() {
        assert_eq!(from(&[]), Ok(Options::default()));
        assert_eq!(from(&[("LAPIDARY_BACKEND", ""), ("LAPIDARY_ADAPTER", "")]), Ok(Options::default()));
        let options = from(&[
            ("LAPIDARY_BACKEND", "vulkan"),
            ("LAPIDARY_ADAPTER", "1"),
            ("LAPIDARY_POWER_PREFERENCE", "low-power"),
            ("LAPIDARY_POOL_BYTES", "1024"),
            ("LAPIDARY_VENDOR_LIBRARIES", "0"),
            ("LAPIDARY_VALIDATION", "1"),
            ("LAPIDARY_PIPELINE_CACHE", "/var/cache/kernels"),
            ("LAPIDARY_WORKGROUP_HINT", "128"),
            ("LAPIDARY_THREADS", "3"),
            ("LAPIDARY_PROFILE", "1"),
        ]);
        let expected = Options {
            adapter: Some(1),
            power_preference: PowerPreference::LowPower,
            pool_bytes: 1024,
            vendor_libraries: false,
            validation: true,
            pipeline_cache: PipelineCache::Folder("/var/cache/kernels".into()),
            workgroup_hint: Some(128),
            threads: Some(3),
            profile: true,
            ..Options::only(BackendId::Vulkan)
        };
        assert_eq!(options, Ok(expected));
        assert_eq!(["on", "off"].map(PipelineCache::from_name), [PipelineCache::On, PipelineCache::Off]);
        #[cfg(unix)]
        {
            let name: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"/cache/\xff".to_vec());
            let options = Options::from_variables(|variable| (variable == "LAPIDARY_PIPELINE_CACHE").then(|| name.clone()));
            assert_eq!(options.map(|options| options.pipeline_cache), Ok(PipelineCache::Folder(name.into())));
        }
        assert_eq!(from(&[("LAPIDARY_BACKEND", "cpu")]).map(|options| options.backend), Ok(Choice::Cpu));
    }

    #[test]
    fn what_a_variable_cannot_be_is_said_with_its_name() {
        let said = |name, value| from(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(
            said("LAPIDARY_BACKEND", "opencl"),
            "LAPIDARY_BACKEND is opencl, but it must be auto, cpu, or one of cuda, vulkan, webgpu, webgl2, simd, scalar"
        );
        for (name, values) in [
            ("LAPIDARY_ADAPTER", &["-1", "one", "4294967296"][..]),
            ("LAPIDARY_POWER_PREFERENCE", &["low", "1"]),
            ("LAPIDARY_POOL_BYTES", &["1 MB", "-1"]),
            ("LAPIDARY_VENDOR_LIBRARIES", &["yes"]),
            ("LAPIDARY_VALIDATION", &["on", "2"]),
            ("LAPIDARY_WORKGROUP_HINT", &["0", "-1", "many"]),
            ("LAPIDARY_THREADS", &["0", "1.5"]),
            ("LAPIDARY_PROFILE", &["trace.json"]),
        ] {
            for value in values {
                assert!(said(name, value).starts_with(&format!("{name} is {value}, but it must be ")), "{name}={value}");
            }
        }
    }
}
