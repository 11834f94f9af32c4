//! Tables that lie about their size, do not end, or are no files: an error, and little memory.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::files::parquet;
use super::support::{Folder, regression_rows, regression_table};

/// An .npy file with that header, whose length may be claimed to be another.
fn npy_file(version: u8, header: &str, length: Option<u32>, numbers: usize) -> Vec<u8> {
    let length = length.unwrap_or(header.len() as u32).to_le_bytes();
    let length = if version == 1 { &length[..2] } else { &length[..] };
    [b"\x93NUMPY", &[version, 0][..], length, header.as_bytes(), &vec![0; 8 * numbers]].concat()
}

fn shape(n: u64, d: u64) -> String {
    format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n}, {d}), }}\n")
}

#[test]
fn npy_headers_that_claim_more_than_there_is_are_refused() {
    let most = u64::MAX;
    let cases: [(Vec<u8>, &[&str]); 8] = [
        (npy_file(1, &shape(0, 10_000_000_000), None, 0), &["empty", "0 rows of 10000000000 numbers"]),
        (npy_file(1, &shape(10_000_000_000, 0), None, 0), &["empty", "0 numbers"]),
        (npy_file(1, &shape(1, 10_000_000_000), None, 3), &["10000000000 columns", "at most 1000000"]),
        (npy_file(1, &shape(10_000_000_000, 3), None, 3), &["cut off", "10000000000 rows"]),
        (npy_file(1, &shape(most, 3), None, 3), &["`d.npy`"]),
        (npy_file(2, &shape(1, 3), Some(u32::MAX), 3), &["header", "4294967295 bytes"]),
        (npy_file(1, &"(".repeat(60_000), None, 0), &["60000 opening brackets"]),
        (npy_file(1, &shape(1, 3), Some(60_000), 3), &["header", "cut off"]),
    ];
    for (bytes, fragments) in cases {
        Folder::with("d.npy", bytes).fails(1, "fit d.npy --target 0 -o m.json", fragments);
    }
}

/// As many columns as tables of genes have: looking one up must not take a look at all others.
#[test]
fn a_hundred_thousand_columns_are_read() {
    let columns = 100_000;
    let folder = Folder::with("d.npy", npy_file(1, &shape(2, columns), None, 2 * columns as usize));
    assert_eq!(relvec_cli::read_table(&folder.path("d.npy"), 9), Ok((2, columns as usize)));
    let header: Vec<String> = (0..columns).map(|k| format!("gene_{k}")).collect();
    let row = vec!["0.5"; columns as usize].join(",");
    let folder = folder.add("d.csv", format!("{}\n{row}\n{row}\n", header.join(",")));
    assert_eq!(relvec_cli::read_table(&folder.path("d.csv"), 9), Ok((2, columns as usize)));
    folder.fails(1, "fit d.csv --target q -o m.json", &["no column `q`", "(100000 in all)"]);
    let twice = folder.read("d.csv").replacen("gene_99999", "gene_7", 1);
    folder.add("d.csv", twice).fails(1, "fit d.csv --target gene_1 -o m.json", &["`gene_7` twice", "8 and 100000"]);
}

#[test]
fn packed_rows_without_end_are_refused() {
    let packed = |part: &[u8], times: usize| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let piece = part.repeat(1 << 12);
        (0..times).for_each(|_| encoder.write_all(&piece).unwrap());
        encoder.finish().unwrap()
    };
    // A few rows, then bytes without end: two packed files, one behind the other.
    let fit = "fit d.csv.gz --target y -o m.json";
    let after_head = |byte: &[u8]| {
        let mut head = GzEncoder::new(Vec::new(), Compression::fast());
        head.write_all(b"a,y\n1,2\n3,4").unwrap();
        [head.finish().unwrap(), packed(byte, 1 << 10)].concat()
    };
    Folder::with("d.csv.gz", after_head(b",")).fails(1, fit, &["row 2 (line 3) has more than 1002 cells"]);
    Folder::with("d.csv.gz", after_head(b"4")).fails(1, fit, &["row 2 (line 3) has a cell of more than 1048576 bytes"]);
    Folder::with("d.csv.gz", after_head(b"\"")).fails(1, fit, &["row 2 (line 3)"]);
    let header = packed(b"x,", 1 << 9);
    Folder::with("d.csv.gz", header).fails(1, fit, &["the header has more than 1000000 cells"]);
}

/// What a file says of rows, pages and columns is checked before room is made for it.
#[test]
fn parquet_files_that_claim_more_than_there_is_are_refused() {
    let folder = Folder::new();
    parquet(&folder.path("good.parquet"), ["a", "b", "y"], &regression_rows(30), 30);
    let good = fs::read(folder.path("good.parquet")).unwrap();
    let fit = "fit d.parquet --target y -o m.json";
    let refused = |bytes: Vec<u8>, fragments: &[&str]| Folder::with("d.parquet", bytes).fails(1, fit, fragments);
    let footer = |bytes: &[u8]| [b"PAR1", bytes, &(bytes.len() as u32).to_le_bytes(), b"PAR1"].concat();
    // A schema of groups in groups: field 2, a list of structures, each with one child.
    let nested: Vec<u8> = (0..50_000).flat_map(|_| [0x55, 2, 0]).collect();
    refused(footer(&[&[0x29, 0xfc, 0xd0, 0x86, 0x03], &nested[..], &[0]].concat()), &["`d.parquet`", "footer"]);
    // Lists in lists, and a list of more elements than there are bytes.
    refused(footer(&[0x19; 100_000]), &["footer"]);
    refused(footer(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0]), &["footer"]);
    refused(footer(&[]), &["footer"]);
    refused([b"PAR1", &[0xff; 4][..], b"PAR1"].concat(), &["footer has 4294967295 bytes"]);
    refused(good[..good.len() - 1].to_vec(), &["end is missing"]);
    refused([&good[..good.len() - 4], b"PARE"].concat(), &["encrypted"]);
    refused(b"PAR1".to_vec(), &["too short"]);
    // The header of the first page, a dictionary: its kind in field 1, then its sizes, of two bytes each.
    assert_eq!((&good[4..7], good[9]), (&[0x15, 4, 0x15][..], 0x15));
    for claim in [[0xfe, 0xff, 0xff, 0xff, 0x0f], [0xff, 0xff, 0xff, 0xff, 0x0f]] {
        let page = [&good[..7], &claim[..], &good[9..]].concat();
        refused(page, &["cannot read row 1"]);
    }
}

#[cfg(unix)]
#[test]
fn devices_pipes_and_folders_are_tables_or_errors() {
    let folder = Folder::with("d.csv", regression_table(20, ","));
    folder.fails(1, "fit /dev/zero --target y -o m.json", &["`/dev/zero`", "the header has a cell of more than 1048576 bytes"]);
    folder.fails(1, "fit /dev/urandom --target y -o m.json", &["`/dev/urandom`"]);
    folder.fails(1, "fit /dev/null --target y -o m.json", &["empty"]);
    folder.fails(1, "fit .. --target y -o m.json", &["folder"]);
    parquet(&folder.path("d.parquet"), ["a", "b", "y"], &regression_rows(20), 20);
    fs::write(folder.path("d.npy"), npy_file(1, &shape(2, 2), None, 4)).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(folder.read("d.csv").as_bytes()).unwrap();
    fs::write(folder.path("d.csv.gz"), gzip.finish().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
    let piped = |file: &str, line: &str| {
        let bytes = fs::read(folder.path(file)).unwrap();
        let path = folder.path("pipe");
        let writer = std::thread::spawn(move || {
            // Nobody reads to the end of what is refused.
            let _ = fs::OpenOptions::new().write(true).open(path).and_then(|mut pipe| pipe.write_all(&bytes));
        });
        let run = folder.run(line);
        writer.join().unwrap();
        run
    };
    folder.fit("d.csv --target y -o file.json");
    for file in ["d.csv", "d.csv.gz"] {
        assert_eq!(piped(file, "fit pipe --target y --preset tipping2001 -o m.json").code, 0, "{file}");
        assert_eq!(folder.read("m.json"), folder.read("file.json"));
    }
    for file in ["d.parquet", "d.npy"] {
        let run = piped(file, "fit pipe --target y -o m.json");
        assert!(run.code == 1 && run.stderr.contains("cannot be read from a pipe"), "{run:?}");
    }
}

/// A table of which nobody knows the length is read until it takes more than it may.
#[cfg(unix)]
#[test]
fn rows_without_end_stop_at_the_memory_limit() {
    let folder = Folder::new();
    let command = assert_cmd::cargo::cargo_bin("relvec");
    let line = "fit /dev/stdin --target y -o m.json --set memory_limit=10000000";
    let mut run = Command::new(&command)
        .args(line.split(' '))
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rows = run.stdin.take().unwrap();
    let _ = rows.write_all(b"a,y\n");
    let piece = b"1.5,2.5\n".repeat(1 << 12);
    while rows.write_all(&piece).is_ok() {}
    drop(rows);
    let output = run.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("the memory limit is") && message.contains("rows are read"), "{message}");
}
