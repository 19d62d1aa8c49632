//! `lapidary matmul`: products of files.

use super::*;

/// A `.npy` file as NumPy writes it.
fn npy(descr: &str, fortran_order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn product(name: &str, a: &[u8], b: &[u8]) -> (PathBuf, Output) {
    let folder = folder(name);
    let paths = ["a.npy", "b.npy", "c.npy"].map(|file| folder.join(file));
    std::fs::write(&paths[0], a).unwrap();
    std::fs::write(&paths[1], b).unwrap();
    let _ = std::fs::remove_file(&paths[2]);
    let [a, b, c] = paths.each_ref().map(|path| path.to_str().unwrap());
    let output = run(&["matmul", a, b, "-o", c, "--backend", "cpu"]);
    (paths[2].clone(), output)
}

#[test]
fn files_of_every_type_and_order_are_multiplied() {
    // A = [1 2 3; 4 5 6], B = [1 0; 0 1; 1 1].
    let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0f64, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let a_rows = npy("<f4", "False", "(2, 3)", &a.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
    let a_columns: Vec<u8> = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    let a_columns = npy(">f4", "True", "(2, 3)", &a_columns);
    let b_rows = npy(">f8", "False", "(3, 2)", &b.iter().flat_map(|x| x.to_be_bytes()).collect::<Vec<_>>());
    // In f16, 1 is 0x3C00.
    let b_columns: Vec<u8> = [1u16, 0, 1, 0, 1, 1].iter().flat_map(|x| (x * 0x3C00).to_le_bytes()).collect();
    let b_columns = npy("<f2", "True", "(3, 2)", &b_columns);
    for (turn, (a, b)) in
        [(&a_rows, &b_rows), (&a_columns, &b_columns), (&a_rows, &b_columns), (&a_columns, &b_rows)].into_iter().enumerate()
    {
        let (c, output) = product(&format!("product-{turn}"), a, b);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty() && text(&output.stderr).contains("fallback"), "talk goes to stderr");
        let values: Vec<u8> = [4.0f32, 5.0, 10.0, 11.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(std::fs::read(c).unwrap(), npy("<f4", "False", "(2, 2)", &values));
    }
}

/// Even if it is an operand of the product.
#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_written_whole_stays_as_it_was() {
    let folder = folder("whole");
    let a = folder.join("a.npy");
    let ones: Vec<u8> = [1.0f32; 1024].iter().flat_map(|x| x.to_le_bytes()).collect();
    let operand = npy("<f4", "False", "(32, 32)", &ones);
    std::fs::write(&a, &operand).unwrap();
    // No file may be longer than a block, of 512 or of 1024 bytes; 25 is SIGXFSZ, which ends a process that writes more.
    let script = "trap '' 25; ulimit -f 1; exec \"$0\" matmul \"$1\" \"$1\" -o \"$1\" --backend scalar";
    let output = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_lapidary")]).arg(&a).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("a.npy: "), "{said}");
    assert!(std::fs::read(&a).unwrap() == operand, "the operand is lost");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left of what was tried");
    let a = a.to_str().unwrap();
    printed(&["matmul", a, a, "-o", a, "--backend", "scalar"]);
    assert!(std::fs::read(a).unwrap().ends_with(&32.0f32.to_le_bytes()), "where there is room it is the product");
}

#[test]
#[cfg(unix)]
fn a_product_goes_through_links_and_pipes_and_keeps_the_mode_of_what_it_replaces() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("links");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("below")).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (a, link, below) = (file("a.npy"), file("link.npy"), file("below/c.npy"));
    let whole = npy("<f4", "False", "(2, 2)", &[0; 16]);
    std::fs::write(&a, &whole).unwrap();
    symlink("below/more.npy", &link).unwrap();
    symlink("c.npy", file("below/more.npy")).unwrap();
    let multiply = |out: &str| run(&["matmul", &a, &a, "-o", out, "--backend", "scalar"]);
    for mode in [None, Some(0o600)] {
        if let Some(mode) = mode {
            std::fs::write(&below, "before").unwrap();
            std::fs::set_permissions(&below, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let output = multiply(&link);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(Path::new(&link).is_symlink() && std::fs::read(&below).unwrap() == whole);
        let now = std::fs::metadata(&below).unwrap().permissions().mode() & 0o777;
        assert!(mode.is_none_or(|mode| mode == now), "{now:o}");
    }
    assert_eq!(multiply("/dev/stdout").stdout, whole);
    // The file is the one that is held open, not another of its name.
    let held = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(file("held.npy")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    command.args(["matmul", &a, &a, "-o", "/dev/stdout", "--backend", "scalar"]).stdout(held.try_clone().unwrap());
    assert!(command.stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(held.metadata().unwrap().len(), whole.len() as u64);
}

#[test]
fn a_product_of_files_tells_its_parts() {
    let folder = folder("parts");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (a, c, trace) = (file("a.npy"), file("c.npy"), file("trace.json"));
    std::fs::write(&a, npy("<f4", "False", "(2, 2)", &[0; 16])).unwrap();
    let arguments = ["matmul", &a, &a, "-o", &c, "--backend", "scalar", "--profile", "--trace", &trace];
    let table = printed(&arguments);
    assert!(table.contains("scalar matmul 2x2x2") && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let value = json(&arguments);
    assert_eq!((&value["profile"]["schema"], &value["profile"]["operations"][0]["size"]), (&1.into(), &"2x2x2".into()));
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    assert!(trace["traceEvents"].is_array());
}

#[test]
fn files_that_do_not_fit_end_with_1_and_leave_no_product() {
    let good = npy("<f4", "False", "(2, 2)", &[0; 16]);
    let fault = |name: &str, a: &[u8], b: &[u8]| {
        let (c, output) = product(name, a, b);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), c.exists()), (Some(1), false), "{said}");
        assert!(output.stdout.is_empty() && !said.contains("panicked"), "{said}");
        said
    };
    assert!(
        fault("cut-off", &good[..good.len() - 3], &good)
            .contains("a.npy: the file is cut off: 16 bytes of values were announced, and 13 are there")
    );
    assert!(fault("no-header", &good, &good[..9]).contains("b.npy: the header cannot be read"));
    assert!(fault("empty", b"", &good).contains("a.npy: this is no .npy file"));
    assert!(fault("dtype", &npy("<i4", "False", "(2, 2)", &[0; 16]), &good).contains("the dtype is <i4, but f16, f32 and f64 can be read"));
    assert!(fault("vector", &npy("<f4", "False", "(4,)", &[0; 16]), &good).contains("the shape is (4,)"));
    let sides = fault("sides", &npy("<f4", "False", "(2, 3)", &[0; 24]), &good);
    assert!(sides.contains("A is 2 × 3 and B is 2 × 2, but A must have as many columns as B has rows"), "{sides}");
    let folder = folder("missing");
    let [missing, c] = ["missing.npy", "c.npy"].map(|file| folder.join(file).to_str().unwrap().to_owned());
    assert!(refused(1, &["matmul", &missing, &missing, "-o", &c]).contains("missing.npy: "));
    assert!(refused(1, &["matmul", folder.to_str().unwrap(), &missing, "-o", &c]).contains("directory"));
}
