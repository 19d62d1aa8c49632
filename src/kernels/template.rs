//! Expands a shader template: one readable source, many unrolled variants, none of them shipped.
//!
//! ```text
//! //# for NAME in COUNT     the lines up to the matching end, COUNT times, $NAME being 0, 1, …; COUNT is a number or a constant
//! //# if CONSTANT           the lines up to else or end, if the constant is not 0; its name may hold $NAME
//! //# else
//! //# end
//! ```
//!
//! A directive has a line of its own, from its first column on. Everything else is copied. Loops are unrolled here and not left to the drivers because only accumulators with constant indices are
//! sure to live in registers.

use crate::error::{Error, Result};

/// A named number that a template can use.
pub type Constant = (&'static str, u32);

/// The template's text with its loops and choices carried out, behind what `out` holds already.
pub fn expand(template: &str, constants: &[Constant], out: String) -> Result<String> {
    expand_with(template, constants, &[], out)
}

/// The same with variables that are known from the start, as if it stood in loops.
pub fn expand_with(template: &str, constants: &[Constant], variables: &[Constant], out: String) -> Result<String> {
    let mut expansion = Expansion { lines: template.split('\n').collect(), constants, variables: variables.to_vec(), out };
    let end = expansion.block(0, true)?;
    if end == expansion.lines.len() { Ok(expansion.out) } else { Err(fault(end, "an end without a beginning")) }
}

struct Expansion<'a> {
    lines: Vec<&'a str>,
    constants: &'a [Constant],
    /// Of the loops around the line, the innermost last.
    variables: Vec<(&'a str, u32)>,
    out: String,
}

impl<'a> Expansion<'a> {
    /// Expands from line `at` to the `else` or `end` that closes this block, or to the last line; gives that line's index. A block that
    /// is not chosen is passed over.
    fn block(&mut self, mut at: usize, chosen: bool) -> Result<usize> {
        while let Some(&line) = self.lines.get(at) {
            let Some(directive) = line.strip_prefix("//# ") else {
                if chosen {
                    self.substitute(line);
                }
                at += 1;
                continue;
            };
            let mut words = directive.split(' ');
            let words = [(); 4].map(|()| words.next().unwrap_or_default());
            let mut end;
            match words {
                ["for", name, "in", count] => {
                    let count = self.number(at, count)?;
                    let mut value = 0;
                    loop {
                        self.variables.push((name, value));
                        end = self.block(at + 1, chosen && count > 0)?;
                        self.variables.pop();
                        value += 1;
                        if value >= count {
                            break;
                        }
                    }
                }
                ["if", name, ..] => {
                    let yes = self.number(at, name)? != 0;
                    end = self.block(at + 1, chosen && yes)?;
                    if self.lines.get(end) == Some(&"//# else") {
                        end = self.block(end + 1, chosen && !yes)?;
                    }
                }
                ["else" | "end", ..] => return Ok(at),
                _ => return Err(fault(at, "unknown directive")),
            }
            if self.lines.get(end) != Some(&"//# end") {
                return Err(fault(end, "a block without an end"));
            }
            at = end + 1;
        }
        Ok(at)
    }

    fn number(&self, at: usize, word: &str) -> Result<u32> {
        let word = &*self.substituted(word);
        let constant = || self.constants.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        word.parse().ok().or_else(constant).ok_or_else(|| fault(at, "unknown number"))
    }

    fn substitute(&mut self, line: &str) {
        let line = self.substituted(line);
        self.out.push_str(&line);
        self.out.push('\n');
    }

    /// A text with the variables' values for their names.
    fn substituted(&self, text: &str) -> String {
        let mut parts = text.split('$');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let mut variables = self.variables.iter().rev();
            let known = variables.find_map(|(name, value)| part.strip_prefix(name).map(|rest| (value.to_string(), rest)));
            let (value, rest) = known.unwrap_or(("$".to_owned(), part));
            out.push_str(&value);
            out.push_str(rest);
        }
        out
    }
}

fn fault(line: usize, what: &str) -> Box<Error> {
    Error::internal(format!("shader template, line {}: {what}", line + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_choices_choose() {
        let template = "x\n//# for i in N\n//# for j in 2\na_$i_$j\n//# end\n//# end\n//# if YES\nyes\n//# else\nno\n//# end\n//# if NO\nhidden\n//# end";
        let text = expand(template, &[("N", 2), ("YES", 1), ("NO", 0)], String::new()).unwrap();
        assert_eq!(text, "x\na_0_0\na_0_1\na_1_0\na_1_1\nyes\n");
    }

    #[test]
    fn a_choice_may_depend_on_the_loop() {
        let template = "//# for i in 2\n//# if YES_$i\na$i\n//# else\nb$i\n//# end\n//# end";
        assert_eq!(expand(template, &[("YES_0", 0), ("YES_1", 1)], String::new()).unwrap(), "b0\na1\n");
    }

    #[test]
    fn an_empty_loop_leaves_nothing() {
        assert_eq!(expand("//# for i in 0\n//# if A\nx\n//# end\n//# end\ny", &[("A", 1)], String::new()).unwrap(), "y\n");
    }

    #[test]
    fn faults_name_their_line() {
        for (template, line) in
            [("//# end", "line 1"), ("a\n//# if NOPE\n//# end", "line 2"), ("//# for i in 2\nx", "line 3"), ("//# loop", "line 1")]
        {
            let error = expand(template, &[], String::new()).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}
