//! NumPy's `.npy` files, as NEP 1 and numpy.lib.format define them: versions 1 to 3, matrices of f16, f32 and f64 in either byte order and
//! in either layout. Read in pieces, straight into the matrix: a file need not fit memory twice.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;

use half::f16;

/// A header longer than this is no header; NumPy's own limit is 10,000.
const MAX_HEADER_BYTES: u32 = 1 << 20;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// A matrix as its file has it.
#[derive(Debug, PartialEq)]
pub struct Matrix {
    pub rows: u64,
    pub columns: u64,
    /// Whether the values go by columns.
    pub by_columns: bool,
    pub dtype: Dtype,
    pub values: Vec<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dtype {
    pub bytes: usize,
    big_endian: bool,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.bytes * 8)
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("this is no .npy file")]
    NotNpy,
    #[error("this is .npy version {major}.{minor}, but 1 to 3 can be read")]
    Version { major: u8, minor: u8 },
    #[error("the header cannot be read: {0}")]
    Header(String),
    #[error("the dtype is {0}, but f16, f32 and f64 can be read")]
    Dtype(String),
    #[error("the shape is ({0}), but a matrix has two dimensions")]
    Shape(String),
    #[error("the shape is {rows} × {columns}, more than memory holds")]
    TooLarge { rows: u64, columns: u64 },
    #[error("the file is cut off: {expected} bytes of values were announced, and {found} are there")]
    Truncated { expected: u64, found: u64 },
    #[error("more than the {expected} bytes of values that the header announces are there")]
    Excess { expected: u64 },
}

/// Reads a matrix from a file.
pub fn read(path: &Path) -> Result<Matrix, Fault> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(Fault::Io(ErrorKind::IsADirectory.into()));
    }
    read_from(BufReader::with_capacity(1 << 20, file))
}

fn read_from(mut file: impl Read) -> Result<Matrix, Fault> {
    let header = read_header(&mut file)?;
    let (rows, columns, by_columns) = (header.rows, header.columns, header.by_columns);
    let dtype = header.dtype;
    let too_large = || Fault::TooLarge { rows, columns };
    let elements = rows.checked_mul(columns).and_then(|elements| usize::try_from(elements).ok()).ok_or_else(too_large)?;
    let expected = elements.checked_mul(dtype.bytes).ok_or_else(too_large)? as u64;
    let mut values: Vec<f32> = Vec::new();
    // A piece at a time: a header may announce what the file has not got.
    let mut piece = vec![0u8; 1 << 16];
    let mut found = 0u64;
    while found < expected {
        let wanted = piece.len().min((expected - found).try_into().unwrap_or(usize::MAX));
        let got = fill(&mut file, &mut piece[..wanted])?;
        found += got as u64;
        if got < wanted {
            return Err(Fault::Truncated { expected, found });
        }
        let left = elements - values.len();
        // Grown by doubling, and never past what is announced.
        if values.capacity() - values.len() < got / dtype.bytes {
            values.try_reserve_exact(left.min(values.len().max(1 << 20))).map_err(|_| too_large())?;
        }
        dtype.append(&piece[..got], &mut values);
    }
    if fill(&mut file, &mut [0])? != 0 {
        return Err(Fault::Excess { expected });
    }
    Ok(Matrix { rows, columns, by_columns, dtype, values })
}

/// Reads until the piece is full or the file at its end.
fn fill(file: &mut impl Read, piece: &mut [u8]) -> Result<usize, Fault> {
    let mut got = 0;
    while got < piece.len() {
        match file.read(&mut piece[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}

impl Dtype {
    /// By NumPy's name, e.g. `<f4`.
    fn parse(name: &str) -> Option<Self> {
        let (order, kind) = name.split_at_checked(1)?;
        let bytes = match kind {
            "f2" => 2,
            "f4" => 4,
            "f8" => 8,
            _ => return None,
        };
        let big_endian = match order {
            "<" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => return None,
        };
        Some(Self { bytes, big_endian })
    }

    fn append(self, bytes: &[u8], values: &mut Vec<f32>) {
        /// Each group of bytes, in little-endian order, as a value.
        fn each<const N: usize>(bytes: &[u8], big_endian: bool, values: &mut Vec<f32>, value: impl Fn([u8; N]) -> f32) {
            let (groups, _) = bytes.as_chunks::<N>();
            values.extend(groups.iter().map(|&group| {
                let mut group = group;
                if big_endian {
                    group.reverse();
                }
                value(group)
            }));
        }
        match self.bytes {
            2 => each(bytes, self.big_endian, values, |group| f16::from_le_bytes(group).to_f32()),
            4 => each(bytes, self.big_endian, values, f32::from_le_bytes),
            _ => each(bytes, self.big_endian, values, |group| f64::from_le_bytes(group) as f32),
        }
    }
}

struct Header {
    rows: u64,
    columns: u64,
    by_columns: bool,
    dtype: Dtype,
}

fn read_header(file: &mut impl Read) -> Result<Header, Fault> {
    let mut start = [0; 8];
    if fill(file, &mut start)? < 8 || !start.starts_with(MAGIC) {
        return Err(Fault::NotNpy);
    }
    let [.., major, minor] = start;
    let cut_off = || Fault::Header("it is cut off".to_owned());
    let length_bytes = match major {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(Fault::Version { major, minor }),
    };
    let mut length = [0; 4];
    if fill(file, &mut length[..length_bytes])? < length_bytes {
        return Err(cut_off());
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        return Err(Fault::Header(format!("it would have {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    if fill(file, &mut text)? < text.len() {
        return Err(cut_off());
    }
    parse_header(&String::from_utf8_lossy(&text))
}

/// A Python dict such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }`.
fn parse_header(text: &str) -> Result<Header, Fault> {
    let value = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let after = quoted.iter().find_map(|key| text.split_once(key.as_str())).map(|(_, after)| after.trim_start());
        let value = after.and_then(|after| after.strip_prefix(':')).map(str::trim_start);
        value.ok_or_else(|| Fault::Header(format!("it does not tell {key}")))
    };
    let descr = value("descr")?;
    let name = match descr.chars().next() {
        Some(quote @ ('\'' | '"')) => descr[1..].split(quote).next().unwrap_or_default(),
        // A list: a structured type.
        _ => descr.find(']').map_or(descr, |end| &descr[..=end]),
    };
    let dtype = Dtype::parse(name).ok_or_else(|| Fault::Dtype(name.chars().take(40).collect()))?;
    let order = value("fortran_order")?;
    let by_columns = match (order.starts_with("True"), order.starts_with("False")) {
        (true, _) => true,
        (_, true) => false,
        _ => return Err(Fault::Header("fortran_order is neither True nor False".to_owned())),
    };
    let shape = value("shape")?.strip_prefix('(').and_then(|shape| shape.split_once(')'));
    let (shape, _) = shape.ok_or_else(|| Fault::Header("the shape is no tuple".to_owned()))?;
    let sides: Vec<&str> = shape.split(',').map(str::trim).filter(|side| !side.is_empty()).collect();
    let [rows, columns] = sides[..] else { return Err(Fault::Shape(shape.trim().chars().take(40).collect())) };
    let side = |side: &str| side.trim_end_matches('L').parse().map_err(|_| Fault::Header(format!("a side of the shape is {side}")));
    Ok(Header { rows: side(rows)?, columns: side(columns)?, by_columns, dtype })
}

/// Writes a matrix by rows, in little-endian f32, as version 1.
pub fn write(out: &mut impl Write, rows: u64, columns: u64, values: &[f32]) -> io::Result<()> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // The values start at a multiple of 64, after a line's end.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&u16::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
    writeln!(out, "{header:0$}", length - 1)?;
    for piece in values.chunks(1 << 14) {
        let bytes: Vec<u8> = piece.iter().flat_map(|value| value.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [&MAGIC[..], &[1, 0], &length, header.as_bytes(), data].concat()
    }

    fn fault(file: &[u8]) -> String {
        read_from(file).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let values: Vec<f32> = (0..40_000).map(|i| i as f32 - 7.5).collect();
        let mut file = Vec::new();
        write(&mut file, 200, 200, &values).unwrap();
        assert_eq!((file.len() - values.len() * 4) % 64, 0);
        let matrix = read_from(&file[..]).unwrap();
        assert_eq!((matrix.rows, matrix.columns, matrix.by_columns, matrix.values == values), (200, 200, false, true));
        let mut file = Vec::new();
        write(&mut file, 0, 5, &[]).unwrap();
        assert!(read_from(&file[..]).unwrap().values.is_empty());
    }

    #[test]
    fn every_type_and_order_is_read() {
        let exact = [1.5f32, -2.0];
        let both = |descr: &str, data: Vec<u8>| {
            assert_eq!(read_from(&file(&format!("'{descr}'"), "True", "(2, 1)", &data)[..]).unwrap().values, exact, "{descr}");
        };
        both("<f2", exact.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect());
        both(">f2", exact.iter().flat_map(|&x| f16::from_f32(x).to_be_bytes()).collect());
        both("<f4", exact.iter().flat_map(|x| x.to_le_bytes()).collect());
        both(">f4", exact.iter().flat_map(|x| x.to_be_bytes()).collect());
        both("<f8", exact.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect());
        both(">f8", exact.iter().flat_map(|&x| f64::from(x).to_be_bytes()).collect());
        assert!(read_from(&file("'<f4'", "True", "(0, 1L)", &[])[..]).unwrap().by_columns);
    }

    #[test]
    fn what_is_no_matrix_is_refused_with_a_reason() {
        assert_eq!(fault(b""), "this is no .npy file");
        assert_eq!(fault(b"PK\x03\x04 an npz file"), "this is no .npy file");
        assert_eq!(fault(b"\x93NUMPY\x07\x01rest"), "this is .npy version 7.1, but 1 to 3 can be read");
        assert_eq!(fault(b"\x93NUMPY\x01\x00\xff\x00{"), "the header cannot be read: it is cut off");
        assert_eq!(fault(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "the header cannot be read: it would have 4294967295 bytes");
        assert_eq!(fault(&file("'<i8'", "False", "(1, 1)", &[0; 8])), "the dtype is <i8, but f16, f32 and f64 can be read");
        assert!(fault(&file("[('x', '<f4')]", "False", "(1, 1)", &[])).contains("the dtype is [('x', '<f4')], but"));
        assert_eq!(fault(&file("'|O'", "False", "(1, 1)", &[])), "the dtype is |O, but f16, f32 and f64 can be read");
        assert_eq!(fault(&file("'<f4'", "False", "(3,)", &[0; 12])), "the shape is (3,), but a matrix has two dimensions");
        assert_eq!(fault(&file("'<f4'", "False", "()", &[0; 4])), "the shape is (), but a matrix has two dimensions");
        assert_eq!(fault(&file("'<f4'", "False", "(-1, 2)", &[])), "the header cannot be read: a side of the shape is -1");
        assert_eq!(fault(&file("'<f4'", "maybe", "(1, 2)", &[])), "the header cannot be read: fortran_order is neither True nor False");
        let huge = fault(&file("'<f4'", "False", "(18446744073709551615, 3)", &[]));
        assert_eq!(huge, "the shape is 18446744073709551615 × 3, more than memory holds");
    }

    #[test]
    fn too_few_and_too_many_values_are_told_with_the_numbers() {
        let short = fault(&file("'<f4'", "False", "(4000000000, 4000)", &[0; 10]));
        assert_eq!(short, "the file is cut off: 64000000000000 bytes of values were announced, and 10 are there");
        let long = fault(&file("'<f4'", "False", "(1, 2)", &[0; 9]));
        assert_eq!(long, "more than the 8 bytes of values that the header announces are there");
    }
}
