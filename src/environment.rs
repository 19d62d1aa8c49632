//! Options from environment variables. Only [`Options::from_env`] reads them: a library must not change what a program does behind its back.

use std::ffi::OsString;

use crate::error::{Error, Result};
use crate::info::BackendId;
use crate::options::{Choice, Options, PowerPreference};

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
    ///
    /// # Errors
    /// [`Error::InvalidOption`] for a value that the variable cannot have.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let mut options = Self::default();
        let read = |name: &'static str| variable(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned());
        if let Some(value) = read("LAPIDARY_BACKEND") {
            options.backend = Choice::from_name(&value).ok_or_else(|| invalid("LAPIDARY_BACKEND", &value, &Choice::expected()))?;
        }
        if let Some(value) = read("LAPIDARY_ADAPTER") {
            let expected = "it must be the index of a device, counted from 0";
            options.adapter = Some(value.parse().map_err(|_| invalid("LAPIDARY_ADAPTER", &value, expected))?);
        }
        if let Some(value) = read("LAPIDARY_POWER_PREFERENCE") {
            let expected = "it must be high-performance or low-power";
            let known = PowerPreference::from_name(&value);
            options.power_preference = known.ok_or_else(|| invalid("LAPIDARY_POWER_PREFERENCE", &value, expected))?;
        }
        if let Some(value) = read("LAPIDARY_POOL_BYTES") {
            let expected = "it must be a whole number of bytes";
            options.pool_bytes = value.parse().map_err(|_| invalid("LAPIDARY_POOL_BYTES", &value, expected))?;
        }
        if let Some(value) = read("LAPIDARY_VENDOR_LIBRARIES") {
            options.vendor_libraries = match value.as_str() {
                "1" => true,
                "0" => false,
                _ => Err(invalid("LAPIDARY_VENDOR_LIBRARIES", &value, "it must be 1 or 0"))?,
            };
        }
        Ok(options)
    }
}

fn invalid(variable: &str, value: &str, expected: &str) -> Error {
    Error::InvalidOption { option: variable.to_owned(), value: value.to_owned(), expected: expected.to_owned() }
}

impl Choice {
    /// The choice of that name: `auto`, `cpu`, or a backend's.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            name => BackendId::from_name(name).map(Self::Only),
        }
    }

    fn expected() -> String {
        let names: Vec<_> = BackendId::ALL.iter().map(|backend| backend.name()).collect();
        format!("it must be auto, cpu, or one of {}", names.join(", "))
    }
}

impl PowerPreference {
    /// The preference of that name: `high-performance` or `low-power`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "high-performance" => Some(Self::HighPerformance),
            "low-power" => Some(Self::LowPower),
            _ => None,
        }
    }
}

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
        ]);
        let expected = Options {
            adapter: Some(1),
            power_preference: PowerPreference::LowPower,
            pool_bytes: 1024,
            vendor_libraries: false,
            ..Options::only(BackendId::Vulkan)
        };
        assert_eq!(options, Ok(expected));
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
        ] {
            for value in values {
                assert!(said(name, value).starts_with(&format!("{name} is {value}, but it must be ")), "{name}={value}");
            }
        }
    }
}
