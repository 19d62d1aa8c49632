//! Expands a shader template: one readable source, many unrolled variants, none of them shipped.
//!
//! ```text
//! //# for NAME in COUNT     the lines up to the matching end, COUNT times, $NAME being 0, 1, …; COUNT is a number or a constant
//! //# if CONSTANT           the lines up to else or end, if the constant is not 0
//! //# else
//! //# end
//! ```
//!
//! A directive has a line of its own, from its first column on. Everything else is copied. Loops are unrolled here and not left to the drivers because only accumulators with constant indices are
//! sure to live in registers.

use std::fmt::Write;

use crate::error::{Error, Result};

/// A named number that a template can use.
pub type Constant = (&'static str, u32);

/// The template's text with its loops and choices carried out.
pub fn expand(template: &str, constants: &[Constant]) -> Result<String> {
    let lines: Vec<&str> = template.split('\n').collect();
    let mut out = String::with_capacity(template.len() * 4);
    let end = block(&lines, 0, constants, &mut Vec::new(), Some(&mut out))?;
    if end == lines.len() { Ok(out) } else { Err(fault(end, "an end without a beginning")) }
}

fn fault(line: usize, what: &str) -> Error {
    Error::internal(format!("shader template, line {}: {what}", line + 1))
}

/// Expands from line `at` to the `else` or `end` that closes this block, or to the last line; gives that line's index. Without `out`
/// the block is passed over.
fn block(
    lines: &[&str],
    mut at: usize,
    constants: &[Constant],
    variables: &mut Vec<(String, u32)>,
    mut out: Option<&mut String>,
) -> Result<usize> {
    while let Some(line) = lines.get(at) {
        let Some(directive) = line.strip_prefix("//# ") else {
            if let Some(out) = out.as_deref_mut() {
                substitute(line, variables, out);
            }
            at += 1;
            continue;
        };
        let words: Vec<&str> = directive.split(' ').collect();
        match words[..] {
            ["for", name, "in", count] => {
                let count = number(count, constants).ok_or_else(|| fault(at, "unknown count"))?;
                let mut end = None;
                for value in 0..count {
                    variables.push((format!("${name}"), value));
                    end = Some(block(lines, at + 1, constants, variables, out.as_deref_mut())?);
                    variables.pop();
                }
                let end = match end {
                    Some(end) => end,
                    None => block(lines, at + 1, constants, variables, None)?,
                };
                at = close(lines, end)?;
            }
            ["if", name] => {
                let chosen = number(name, constants).ok_or_else(|| fault(at, "unknown constant"))? != 0;
                let mut end = block(lines, at + 1, constants, variables, out.as_deref_mut().filter(|_| chosen))?;
                if lines.get(end) == Some(&"//# else") {
                    end = block(lines, end + 1, constants, variables, out.as_deref_mut().filter(|_| !chosen))?;
                }
                at = close(lines, end)?;
            }
            ["else"] | ["end"] => return Ok(at),
            _ => return Err(fault(at, "unknown directive")),
        }
    }
    Ok(at)
}

fn close(lines: &[&str], end: usize) -> Result<usize> {
    if lines.get(end) == Some(&"//# end") { Ok(end + 1) } else { Err(fault(end, "a block without an end")) }
}

fn number(word: &str, constants: &[Constant]) -> Option<u32> {
    word.parse().ok().or_else(|| constants.iter().find(|(name, _)| *name == word).map(|(_, value)| *value))
}

fn substitute(line: &str, variables: &[(String, u32)], out: &mut String) {
    let mut rest = line;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        match variables.iter().rev().find(|(name, _)| rest.starts_with(name.as_str())) {
            Some((name, value)) => {
                let _ = write!(out, "{value}");
                rest = &rest[name.len()..];
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_choices_choose() {
        let template = "x\n//# for i in N\n//# for j in 2\na_$i_$j\n//# end\n//# end\n//# if YES\nyes\n//# else\nno\n//# end\n//# if NO\nhidden\n//# end";
        let text = expand(template, &[("N", 2), ("YES", 1), ("NO", 0)]).unwrap();
        assert_eq!(text, "x\na_0_0\na_0_1\na_1_0\na_1_1\nyes\n");
    }

    #[test]
    fn an_empty_loop_leaves_nothing() {
        assert_eq!(expand("//# for i in 0\n//# if A\nx\n//# end\n//# end\ny", &[("A", 1)]).unwrap(), "y\n");
    }

    #[test]
    fn faults_name_their_line() {
        for (template, line) in
            [("//# end", "line 1"), ("a\n//# if NOPE\n//# end", "line 2"), ("//# for i in 2\nx", "line 3"), ("//# loop", "line 1")]
        {
            let error = expand(template, &[]).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}
