//! The one table of elementwise functions: each row's expression is at once the text that every shader language compiles and the code
//! of the CPU's twin.
//!
//! That works because an expression uses only what WGSL, GLSL, CUDA C++ and Rust write alike: arithmetic, comparisons, names for what occurs
//! twice, and calls of a few functions that the prelude of each language has under the same name: `select(no, yes, condition)`, `both(a, b)`,
//! `either(a, b)`, … (`shaders/map/prelude.*`, and [`twin`](super::twin) for Rust). `&&` and `||` are not among them: in WGSL each is a
//! branch, and with one in each of a kernel's copies of an expression, a minute can pass until it is compiled. A new function is a row here and
//! nothing else.
//!
//! ```text
//! /// what it computes
//! Name "name" (operands) { [kinds of operands => kind of the result] value; name = value; … }
//! ```
//!
//! The value comes first and the names in it after it, in the order in which they are found.

use super::Kind;

/// The text of a function for shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    /// Names and the values that they stand for, of the operands' kind, in order.
    pub names: &'static [(&'static str, &'static str)],
    /// What it gives.
    pub value: &'static str,
}

/// Some kinds of operands, the kind of the result if it is another, and the text for them: data, since code that makes it would be longer.
type Row = (&'static [Kind], Option<Kind>, Text);

macro_rules! text {
    ({ $value:expr $(; $name:ident = $named:expr)* }) => {
        Text { names: &[$( (stringify!($name), stringify!($named)) ),*], value: stringify!($value) }
    };
}

/// The kind of a result; None if it is the operands'.
macro_rules! result {
    (Same) => {
        None
    };
    ($result:ident) => {
        Some(Kind::$result)
    };
}

/// For each kind what the expression makes of words, where the page's functions are to be had (`build.rs`). Its loop is shared by all functions: one for each would be a third of the package.
#[cfg(of_the_page)]
macro_rules! words {
    ([$($kind:ident)+], $result:ident, $arguments:tt, $body:tt) => {
        &[$( (Kind::$kind, words!(one $kind, $result, $arguments, $body)) ),+]
    };
    (one $kind:ident, Same, $arguments:tt, $body:tt) => { words!(one $kind, $kind, $arguments, $body) };
    (one $kind:ident, $result:ident, ($($argument:ident),+), { $value:expr $(; $name:ident = $named:expr)* }) => {
        |a, b| {
            let [$($argument),+]: [twin::$kind; _] = twin::operands(a, b);
            $( let $name = $named; )*
            let value: twin::$result = $value;
            twin::Word::word(value)
        }
    };
}

/// Runs the expression over words, once for each kind.
#[cfg(not(of_the_page))]
macro_rules! run {
    ($on:expr, [$($kind:ident)+], $result:ident, $arguments:tt, $body:tt) => {
        $( if $on.0 == Kind::$kind { run!(one $on, $kind, $result, $arguments, $body); } )+
    };
    // What gives no truths is not compiled for them.
    (truths $on:expr, [Bool], Same, $arguments:tt, $body:tt) => { run!($on, [Bool], Same, $arguments, $body) };
    (truths $on:expr, $kinds:tt, Bool, $arguments:tt, $body:tt) => { run!($on, $kinds, Bool, $arguments, $body) };
    (truths $on:expr, $kinds:tt, $result:ident, $arguments:tt, $body:tt) => {};
    (one $on:expr, $kind:ident, Same, $arguments:tt, $body:tt) => { run!(one $on, $kind, $kind, $arguments, $body) };
    (one $on:expr, $kind:ident, $result:ident, ($($argument:ident),+), { $value:expr $(; $name:ident = $named:expr)* }) => {{
        struct Row;

        impl twin::Expression<{ [$(stringify!($argument)),+].len() }> for Row {
            type Operand = twin::$kind;
            type Value = twin::$result;

            #[inline(always)]
            fn of([$($argument),+]: [twin::$kind; [$(stringify!($argument)),+].len()]) -> twin::$result {
                $( let $name = $named; )*
                $value
            }
        }

        twin::map::<Row, _, _>($on.1, $on.2)
    }};
}

const fn commas(text: &str) -> usize {
    let (mut count, mut rest) = (0, text.as_bytes());
    while let [first, others @ ..] = rest {
        count += (*first == b',') as usize;
        rest = others;
    }
    count
}

macro_rules! functions {
    ($( $(#[doc = $doc:literal])+ $function:ident $label:literal $arguments:tt
        { $( [$($kind:ident)+ => $result:ident] $body:tt )+ }
    )+) => {
        /// An elementwise function of one or two operands of one kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Function { $( $(#[doc = $doc])+ $function, )+ }

        impl Function {
            /// All of them.
            #[cfg(any(of_the_page, test))]
            pub const ALL: &[Self] = &[$( Self::$function ),+];

            /// The name in reports and errors.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$function => $label, )+ }
            }

            /// The names of its operands, in parentheses.
            pub const fn arguments(self) -> &'static str {
                match self { $( Self::$function => stringify!($arguments), )+ }
            }

            /// How many operands it takes.
            pub const fn arity(self) -> usize {
                match self { $( Self::$function => const { commas(stringify!($arguments)) + 1 }, )+ }
            }

            /// What it gives for operands of a kind, and its text for them; None if it takes none of it.
            pub(crate) fn of(self, kind: Kind) -> Option<(Kind, &'static Text)> {
                const ROWS: &[&[Row]] = &[$( &[$( (&[$(Kind::$kind),+], result!($result), text!($body)) ),+] ),+];
                let (_, result, text) = ROWS[self as usize].iter().find(|(kinds, ..)| kinds.contains(&kind))?;
                Some((result.unwrap_or(kind), text))
            }

            /// Applies it to words of operands of a kind that it takes, each as many as `out` has, one of two also a single one for all.
            #[cfg(not(of_the_page))]
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
            pub(crate) fn apply(self, kind: Kind, operands: &[&[u32]], out: &mut [u32]) {
                self.apply_near(kind, operands, out);
                let far: fn(f32) -> f32 = match self {
                    Self::Sin => f32::sin,
                    Self::Cos => f32::cos,
                    Self::Tan => f32::tan,
                    _ => return,
                };
                if let &[angles] = operands && !super::twin::all(angles, super::twin::is_near) {
                    super::twin::far(far, angles, out);
                }
            }

            /// The same of angles that are not too large, [`is_near`](super::twin::is_near) as they are called.
            #[cfg(not(of_the_page))]
            #[allow(clippy::approx_constant, clippy::excessive_precision, clippy::float_cmp, clippy::nonminimal_bool, reason = "expressions are as in every language")]
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
            pub(crate) fn apply_near(self, kind: Kind, operands: &[&[u32]], out: &mut [u32]) {
                #[allow(clippy::wildcard_imports, reason = "the vocabulary of the expressions")]
                use super::twin::vocabulary::*;
                use super::twin;
                let on = (kind, operands, out);
                // What has vectors of its own, or needs less where all operands are numbers as most are.
                match (self, kind) {
                    (Self::Exp, Kind::F32) if twin::all(operands[0], twin::has_plain_exp) => {
                        return run!(one on, F32, Same, (a), { plain_exp(a) });
                    }
                    (Self::Log, Kind::F32) if twin::all(operands[0], twin::is_plain) => {
                        return run!(one on, F32, Same, (a), { plain_log(a) });
                    }
                    (Self::Pow, Kind::F32) if twin::all(operands[0], twin::is_plain) && twin::all(operands[1], is_finite) => {
                        return run!(one on, F32, Same, (a, b), { plain_power(a, b) });
                    }
                    (Self::Tanh, Kind::F32) => return run!(one on, F32, Same, (a), { tanh(a) }),
                    (Self::Div, Kind::U32) => {
                        return run!(one on, U32, Same, (a, b), {
                            select(quotient_u32(a, d), u32(0), b == u32(0)); d = select(b, u32(1), b == u32(0))
                        });
                    }
                    (Self::Div, Kind::I32) => {
                        return run!(one on, I32, Same, (a, b), {
                            select(select(quotient_i32(a, d), -a, b == i32(-1)), i32(0), b == i32(0));
                            d = select(b, i32(1), either(b == i32(0), b == i32(-1)))
                        });
                    }
                    _ => {}
                }
                match self { $( Self::$function => { $( run!(on, [$($kind)+], $result, $arguments, $body); )+ } )+ }
            }

            /// The same of one that gives truths, each written as a byte.
            #[cfg(not(of_the_page))]
            #[allow(clippy::float_cmp, clippy::nonminimal_bool, reason = "expressions are as in every language")]
            #[cfg_attr(debug_assertions, inline)]
            #[cfg_attr(not(debug_assertions), inline(always))]
            pub(crate) fn apply_to_truths(self, kind: Kind, operands: &[&[u32]], out: &mut [u8]) {
                #[allow(clippy::wildcard_imports, reason = "the vocabulary of the expressions")]
                use super::twin::vocabulary::*;
                use super::twin;
                let on = (kind, operands, out);
                match self { $( Self::$function => { $( run!(truths on, [$($kind)+], $result, $arguments, $body); )+ } )+ }
            }

            /// The same in the browser, one by one.
            #[cfg(of_the_page)]
            #[allow(clippy::approx_constant, clippy::excessive_precision, clippy::float_cmp, clippy::nonminimal_bool, reason = "expressions are as in every language")]
            pub(crate) fn apply(self, kind: Kind, operands: &[&[u32]], out: &mut [u32]) {
                #[allow(clippy::wildcard_imports, reason = "the vocabulary of the expressions")]
                use super::twin::vocabulary::*;
                use super::twin;
                const WORDS: &[&[&[(Kind, fn(u32, u32) -> u32)]]] =
                    &[$( &[$( words!([$($kind)+], $result, $arguments, $body) ),+] ),+];
                let known = WORDS[self as usize].iter().copied().flatten().find(|(of, _)| *of == kind);
                let (Some((_, f)), [a, ..], [.., b]) = (known, operands, operands) else { return };
                for ((out, &a), &b) in out.iter_mut().zip(a.iter().cycle()).zip(b.iter().cycle()) {
                    *out = f(a, b);
                }
            }
        }
    };
}

functions! {
    /// a + b
    Add "add" (a, b) { [F32 I32 U32 => Same] { a + b } }
    /// a − b
    Sub "sub" (a, b) { [F32 I32 U32 => Same] { a - b } }
    /// a · b
    Mul "mul" (a, b) { [F32 I32 U32 => Same] { a * b } }
    /// a / b; of integers without the fraction, and 0 where b is 0. Languages leave open what the least one is by −1
    Div "div" (a, b) {
        [F32 => Same] { a / b }
        [I32 => Same] {
            select(select(a / d, -a, b == i32(-1)), i32(0), b == i32(0));
            d = select(b, i32(1), either(b == i32(0), b == i32(-1)))
        }
        [U32 => Same] { select(a / d, u32(0), b == u32(0)); d = select(b, u32(1), b == u32(0)) }
    }
    /// a − b · trunc(a / b), of a's sign; of integers 0 where b is 0, and not by %, which GLSL leaves open for negative ones
    Rem "rem" (a, b) {
        [F32 => Same] { remainder(a, b) }
        [I32 => Same] { select(a - a / d * d, i32(0), b == i32(0)); d = select(b, i32(1), either(b == i32(0), b == i32(-1))) }
        [U32 => Same] { select(a % d, u32(0), b == u32(0)); d = select(b, u32(1), b == u32(0)) }
    }
    /// a − b · floor(a / b), of b's sign; of integers 0 where b is 0
    Mod "mod" (a, b) {
        [F32 => Same] {
            select(select(r, r + b, (r < 0.0) != (b < 0.0)), zero_of(b), r == 0.0);
            r = remainder(a, b)
        }
        [I32 => Same] {
            select(select(r, r + b, both(r != i32(0), (r < i32(0)) != (b < i32(0)))), i32(0), b == i32(0));
            d = select(b, i32(1), either(b == i32(0), b == i32(-1)));
            r = a - a / d * d
        }
        [U32 => Same] { select(a % d, u32(0), b == u32(0)); d = select(b, u32(1), b == u32(0)) }
    }
    /// aᵇ; of a negative a that is finite only for whole b, else NaN
    Pow "pow" (a, b) {
        [F32 => Same] {
            select(select(select(s, nan_of(a), either(is_nan(a), both(both(a < 0.0, floor(b) != b), both(is_finite(a), is_finite(b))))), nan_of(b), is_nan(b)), 1.0, either(b == 0.0, a == 1.0));
            p = select(power(abs(a), b), 1.0, abs(a) == 1.0);
            s = select(p, -p, both(both(is_negative(a), floor(b) == b), floor(0.5 * b) != 0.5 * b))
        }
        [I32 => Same] { power_i32(a, b) }
        [U32 => Same] { power_u32(a, b) }
    }
    /// The smaller; NaN if one of them is
    Min "min" (a, b) {
        [F32 => Same] { select(select(b, a, a < b), a + b, either(is_nan(a), is_nan(b))) }
        [I32 U32 => Same] { select(b, a, a < b) }
    }
    /// The larger; NaN if one of them is
    Max "max" (a, b) {
        [F32 => Same] { select(select(b, a, a > b), a + b, either(is_nan(a), is_nan(b))) }
        [I32 U32 => Same] { select(b, a, a > b) }
    }
    /// −a
    Neg "neg" (a) { [F32 I32 => Same] { -a } }
    /// |a|
    Abs "abs" (a) {
        [F32 => Same] { abs(a) }
        [I32 => Same] { select(a, -a, a < i32(0)) }
        [U32 => Same] { a }
    }
    /// −1, 0 or 1, as a is negative, zero or positive; NaN of NaN
    Sign "sign" (a) {
        [F32 => Same] { select(select(abs(a), -1.0, a < 0.0), 1.0, a > 0.0) }
        [I32 => Same] { select(select(i32(0), i32(-1), a < i32(0)), i32(1), a > i32(0)) }
        [U32 => Same] { select(u32(0), u32(1), a > u32(0)) }
    }
    /// a · a
    Square "square" (a) { [F32 I32 U32 => Same] { a * a } }
    /// 1 / a
    Reciprocal "reciprocal" (a) { [F32 => Same] { 1.0 / a } }
    /// √a
    Sqrt "sqrt" (a) { [F32 => Same] { sqrt(a) } }
    /// eᵃ
    Exp "exp" (a) { [F32 => Same] { exponential(a) } }
    /// ln a
    Log "log" (a) { [F32 => Same] { logarithm(a) } }
    /// sin a, a in radians
    Sin "sin" (a) { [F32 => Same] { sin(a) } }
    /// cos a, a in radians
    Cos "cos" (a) { [F32 => Same] { cos(a) } }
    /// tan a, a in radians
    Tan "tan" (a) { [F32 => Same] { tan(a) } }
    /// arcsin a in radians
    Asin "asin" (a) { [F32 => Same] { asin(a) } }
    /// arccos a in radians
    Acos "acos" (a) { [F32 => Same] { acos(a) } }
    /// arctan a in radians
    Atan "atan" (a) { [F32 => Same] { arctangent(a) } }
    /// (eᵃ − e⁻ᵃ) / 2, near zero by its series, where the difference would lose digits, and where eᵃ is too large by its root
    Sinh "sinh" (a) { [F32 => Same] {
        select(select(0.5 * e - 0.5 / e, select(0.5, -0.5, a < 0.0) * h * h, abs(a) > 87.0), a + a * s * (0.16666667 + s * (0.008333334 + s * 0.0001984127)), abs(a) < 0.5);
        s = a * a;
        e = exponential(a);
        h = exponential(0.5 * abs(a))
    } }
    /// (eᵃ + e⁻ᵃ) / 2, where eᵃ is too large by its root
    Cosh "cosh" (a) { [F32 => Same] {
        select(0.5 * e + 0.5 / e, 0.5 * h * h, abs(a) > 87.0);
        e = exponential(a);
        h = exponential(0.5 * abs(a))
    } }
    /// (eᵃ − e⁻ᵃ) / (eᵃ + e⁻ᵃ), near zero by its series
    Tanh "tanh" (a) { [F32 => Same] {
        select(select(t, -t, a < 0.0), a * (1.0 - s * (0.33333333 - s * (0.13333333 - s * 0.053968254))), abs(a) < 0.125);
        s = a * a;
        e = exponential(-2.0 * abs(a));
        t = (1.0 - e) / (1.0 + e)
    } }
    /// ln(a + √(a² + 1))
    Asinh "asinh" (a) { [F32 => Same] {
        select(select(l, -l, a < 0.0), a, a == 0.0);
        m = abs(a);
        s = a * a;
        l = select(log_1p(m + s / (1.0 + sqrt(s + 1.0))), logarithm(m) + 0.6931472, m > 1.0e8)
    } }
    /// ln(a + √(a² − 1))
    Acosh "acosh" (a) { [F32 => Same] {
        select(select(log_1p(d + sqrt(d * (a + 1.0))), logarithm(a) + 0.6931472, a > 1.0e8), nan_of(a), a < 1.0);
        d = a - 1.0
    } }
    /// ln((1 + a) / (1 − a)) / 2, near zero by its series
    Atanh "atanh" (a) { [F32 => Same] {
        select(0.5 * logarithm((1.0 + a) / (1.0 - a)), a + a * s * (0.33333333 + s * (0.2 + s * 0.14285714)), abs(a) < 0.125);
        s = a * a
    } }
    /// 1 / (1 + e⁻ᵃ)
    Sigmoid "sigmoid" (a) { [F32 => Same] { select(1.0, e, a < 0.0) / (1.0 + e); e = exponential(-abs(a)) } }
    /// a / (1 + e⁻ᵃ)
    Silu "silu" (a) { [F32 => Same] { a * select(1.0, e, a < 0.0) / (1.0 + e); e = exponential(-abs(a)) } }
    /// a / (1 + e⁻ᵗ) with t = a · (1.5957691 + 0.071354816 · a²)
    GeluTanh "gelu_tanh" (a) { [F32 => Same] {
        a * select(1.0, e, a < 0.0) / (1.0 + e);
        e = exponential(-abs(a) * (1.5957691 + 0.071354816 * a * a))
    } }
    /// The larger of a and 0; NaN of NaN
    Relu "relu" (a) {
        [F32 => Same] { select(select(a, 0.0, a < 0.0), a, is_nan(a)) }
        [I32 => Same] { select(a, i32(0), a < i32(0)) }
    }
    /// ln(1 + eᵃ)
    Softplus "softplus" (a) { [F32 => Same] { select(l, a + l, a > 0.0); l = log_1p(exponential(-abs(a))) } }
    /// (2 / √π) ∫₀ᵃ exp(−t²) dt (Abramowitz and Stegun, 7.1.5 up to 1 and 7.1.26 beyond; within 2·10⁻⁷)
    Erf "erf" (a) { [F32 => Same] {
        select(select(r, -r, a < 0.0), a * (1.1283792 + s * (-0.37612639 + s * (0.11283792 + s * (-0.026866171 + s * (0.0052239776 + s * (-0.0008548327 + s * (0.00012055333 + s * (-0.00001492565 + s * (0.0000016462114 + s * -0.00000016365845))))))))), m < 1.0);
        s = a * a;
        m = abs(a);
        t = 1.0 / (1.0 + 0.3275911 * m);
        r = 1.0 - t * (0.2548296 + t * (-0.28449672 + t * (1.4214138 + t * (-1.4531521 + t * 1.0614054)))) * exponential(-s)
    } }
    /// The largest whole number that is not above a
    Floor "floor" (a) { [F32 => Same] { floor(a) } }
    /// The smallest whole number that is not below a
    Ceil "ceil" (a) { [F32 => Same] { ceil(a) } }
    /// The nearest whole number, of two the even one
    Round "round" (a) { [F32 => Same] { round_even(a) } }
    /// a without its fraction
    Trunc "trunc" (a) { [F32 => Same] { trunc(a) } }
    /// The nearest number that an f16 can hold, of two the even one; ∞ from 65520 on
    RoundToF16 "round_to_f16" (a) { [F32 => Same] { nearest_f16(a) } }
    /// Whether a = b
    Equal "equal" (a, b) { [F32 I32 U32 Bool => Bool] { a == b } }
    /// Whether a ≠ b
    NotEqual "not_equal" (a, b) {
        // The other way round, a NaN would be equal where comparisons are ordered.
        [F32 => Bool] { !(a == b) }
        [I32 U32 Bool => Bool] { a != b }
    }
    /// Whether a < b
    Less "less" (a, b) { [F32 I32 U32 => Bool] { a < b } }
    /// Whether a ≤ b
    LessEqual "less_equal" (a, b) { [F32 I32 U32 => Bool] { a <= b } }
    /// Whether a > b
    Greater "greater" (a, b) { [F32 I32 U32 => Bool] { a > b } }
    /// Whether a ≥ b
    GreaterEqual "greater_equal" (a, b) { [F32 I32 U32 => Bool] { a >= b } }
    /// Whether a is not a number
    IsNan "is_nan" (a) { [F32 => Bool] { is_nan(a) } }
    /// Whether a is ∞ or −∞
    IsInf "is_inf" (a) { [F32 => Bool] { both(!is_nan(a), !is_finite(a)) } }
    /// Both; of integers bit by bit
    And "and" (a, b) { [Bool => Same] { both(a, b) } [I32 U32 => Same] { a & b } }
    /// At least one; of integers bit by bit
    Or "or" (a, b) { [Bool => Same] { either(a, b) } [I32 U32 => Same] { a | b } }
    /// One and not the other; of integers bit by bit
    Xor "xor" (a, b) { [Bool => Same] { a != b } [I32 U32 => Same] { a ^ b } }
    /// The opposite; of integers bit by bit
    Not "not" (a) {
        [Bool => Same] { !a }
        [I32 => Same] { a ^ i32(-1) }
        [U32 => Same] { a ^ u32(4294967295) }
    }
    /// a · 2ᵇ, what is above bit 31 dropped; 0 where b is above 31
    ShiftLeft "shift_left" (a, b) { [U32 => Same] { select(shift_left(a, b), u32(0), b > u32(31)) } }
    /// a / 2ᵇ without the fraction; 0 where b is above 31
    ShiftRight "shift_right" (a, b) { [U32 => Same] { select(shift_right(a, b), u32(0), b > u32(31)) } }
}

#[cfg(test)]
mod tests {
    use super::Function;

    /// JavaScript names a function by its place in the table.
    #[test]
    fn the_package_has_the_same_functions_in_the_same_order() {
        let script = include_str!("../../web/npm/expr.js");
        let list = script.split("const FUNCTIONS = (").nth(1).and_then(|rest| rest.split(".split").next()).unwrap();
        let words = list.split('"').skip(1).step_by(2).flat_map(str::split_whitespace);
        let camel = |name: &str| {
            let mut words = name.split('_');
            let first = words.next().unwrap_or_default().to_owned();
            words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
        };
        let expected = Function::ALL.iter().map(|function| {
            let name = match function {
                Function::Neg => "negative".to_owned(),
                Function::Mod => "modulo".to_owned(),
                _ => camel(function.name()),
            };
            if function.arity() == 2 { name + "+" } else { name }
        });
        assert_eq!(words.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}
