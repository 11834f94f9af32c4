//! Damaged tables: whatever the bytes of a file are, reading it ends with its rows or with an error, and takes little
//! memory.
//!
//! The files in `corpus/tables` are changed at random (bytes, numbers, pieces) and read. A run tries a fixed number of
//! changed files, the same each time. RELVEC_FUZZ_SECONDS=60 lets each format be tried for that long instead, with another
//! seed each time, which is printed; RELVEC_FUZZ_SEED=N repeats one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::io::{Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Changed files of each format in a run without a time.
const INPUTS: usize = 1500;
/// Rows read of each, at most: a few bytes can stand for any number of equal rows.
const ROWS: usize = 20_000;
/// Bytes that reading one may take. The files have some thousand bytes; blocks of rows and limits of cells take the most.
const MEMORY: usize = 1 << 27;

/// Bytes in use, and the most there were since the last reset.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

fn add(size: usize) {
    let used = USED.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(used, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One at a time: the memory of a thread is not told from that of others.
static ALONE: Mutex<()> = Mutex::new(());

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/tables")
}

/// The files of the corpus with that ending, in the order of their names.
fn corpus(ending: &str) -> Vec<(String, Vec<u8>)> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder()).unwrap().map(name).filter(|name| name.ends_with(ending)).collect();
    names.sort();
    assert!(!names.is_empty(), "no {ending} in the corpus");
    names.into_iter().map(|name| (name.clone(), fs::read(folder().join(name)).unwrap())).collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value}: a whole number is expected")))
}

/// A run over one format.
struct Run {
    folder: tempfile::TempDir,
    format: &'static str,
    seed: u64,
    random: Pcg64,
    end: Option<Instant>,
    tried: usize,
    read: usize,
    slowest: Duration,
    most: usize,
    faults: Vec<String>,
}

impl Run {
    fn new(format: &'static str) -> Run {
        let time = number("RELVEC_FUZZ_SECONDS").map(Duration::from_secs);
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let seed = number("RELVEC_FUZZ_SEED").unwrap_or_else(|| if time.is_some() { clock() } else { 0 });
        Run {
            folder: tempfile::tempdir().unwrap(),
            format,
            seed,
            random: Pcg64::seed_from_u64(seed),
            end: time.map(|time| Instant::now() + time),
            tried: 0,
            read: 0,
            slowest: Duration::ZERO,
            most: 0,
            faults: vec![],
        }
    }

    fn goes_on(&self, most: usize) -> bool {
        self.end.map_or(self.tried < most, |end| Instant::now() < end)
    }

    /// Reads a file, and keeps it if that panics or takes too much memory.
    fn read(&mut self, bytes: &[u8], what: &str) {
        let path = self.folder.path().join("table");
        fs::write(&path, bytes).unwrap();
        PEAK.store(USED.load(Ordering::Relaxed), Ordering::Relaxed);
        let before = USED.load(Ordering::Relaxed);
        let start = Instant::now();
        let result = panic::catch_unwind(AssertUnwindSafe(|| relvec_cli::read_table(&path, ROWS)));
        self.slowest = self.slowest.max(start.elapsed());
        let memory = PEAK.load(Ordering::Relaxed).saturating_sub(before);
        self.most = self.most.max(memory);
        self.tried += 1;
        let fault = match result {
            Err(_) => "a panic".to_string(),
            Ok(_) if memory > MEMORY => format!("{memory} bytes of memory"),
            Ok(read) => {
                self.read += usize::from(read.is_ok());
                return;
            }
        };
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}-{}-{}", self.format, self.seed, self.tried));
        fs::write(&kept, bytes).unwrap();
        self.faults.push(format!("{fault}: {what}, kept as {}", kept.display()));
    }

    #[track_caller]
    fn finish(self) {
        let Run { format, seed, tried, read, slowest, most, faults, .. } = self;
        println!(
            "{format}: seed {seed}, {tried} files tried, {read} of them read, {} faults; the slowest took {:.2} s, the largest {} KiB",
            faults.len(),
            slowest.as_secs_f64(),
            most / 1024
        );
        assert!(faults.is_empty(), "{} faults, the first: {:#?}", faults.len(), &faults[..faults.len().min(10)]);
    }
}

/// Numbers at the edges of what is counted and measured.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];

/// Pieces of text that readers of tables look for.
const TOKENS: [&str; 24] = [
    "\"",
    "\"\"",
    ",",
    ";",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\u{feff}",
    "1,010",
    "0,5",
    "5%",
    "$5",
    "nan",
    "inf",
    "1e999",
    "-0",
    "007",
    "9007199254740993",
    " ",
    "(1, 2)",
    "99999999999",
    "{'descr':",
];

/// Changes a file in some places, most often one; `other`: a file that pieces are taken from.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Pcg64) {
    let changes = 1 + if random.random_bool(0.5) { 0 } else { random.random_range(0..6) };
    for _ in 0..changes {
        if bytes.is_empty() {
            bytes.push(0);
        }
        let length = bytes.len();
        // Headers and footers say how all else is read.
        let near = length.min(400);
        let place = match random.random_range(0..4) {
            0 => random.random_range(0..near),
            1 => length - 1 - random.random_range(0..near),
            _ => random.random_range(0..length),
        };
        let piece = |random: &mut Pcg64, of: usize| {
            let start = random.random_range(0..of);
            start..(start + random.random_range(1..=64)).min(of)
        };
        match random.random_range(0..10) {
            0..3 => bytes[place] = random.random(),
            3 => bytes[place] ^= 1 << random.random_range(0..8),
            4 => {
                let edge = EDGES[random.random_range(0..EDGES.len())].to_le_bytes();
                let width = (1usize << random.random_range(0..4)).min(length - place);
                bytes[place..place + width].copy_from_slice(&edge[..width]);
            }
            5 => {
                // A number in pieces of seven bits, as large as may be.
                let mut varint = vec![0xff; random.random_range(1..10)];
                varint.push(random.random_range(0..0x80));
                bytes.splice(place..(place + 1).min(length), varint);
            }
            6 => {
                let end = (place + random.random_range(1..=64)).min(length);
                bytes.drain(place..end);
            }
            7 => {
                let range = piece(random, length);
                let copy = bytes[range].repeat(random.random_range(1..4));
                bytes.splice(place..place, copy);
            }
            8 if !other.is_empty() => {
                let range = piece(random, other.len());
                bytes.splice(place..place, other[range].iter().copied());
            }
            8 => bytes.truncate(place),
            _ => {
                let token = TOKENS[random.random_range(0..TOKENS.len())];
                bytes.splice(place..place, token.bytes());
            }
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Changed files of one format; `pack` follows the change, on what `unpack` made of the file.
fn fuzz(format: &'static str, ending: &str, unpack: impl Fn(&[u8]) -> Vec<u8>, pack: impl Fn(Vec<u8>, &mut Pcg64) -> Vec<u8>) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let files = corpus(ending);
    let mut run = Run::new(format);
    let plain: Vec<Vec<u8>> = files.iter().map(|(_, bytes)| unpack(bytes)).collect();
    while run.goes_on(INPUTS) {
        let (one, other) = (run.random.random_range(0..files.len()), run.random.random_range(0..files.len()));
        let mut bytes = plain[one].clone();
        change(&mut bytes, &plain[other], &mut run.random);
        let bytes = pack(bytes, &mut run.random);
        run.read(&bytes, &format!("{}, number {}", files[one].0, run.tried));
    }
    run.finish();
}

#[test]
fn changed_csv_files_are_read_or_refused() {
    fuzz("csv", ".csv", <[u8]>::to_vec, |bytes, _| bytes);
}

/// The text is changed and packed again, or the packed file is changed.
#[test]
fn changed_gzip_files_are_read_or_refused() {
    let unpack = |bytes: &[u8]| {
        let mut text = Vec::new();
        MultiGzDecoder::new(bytes).read_to_end(&mut text).unwrap();
        text
    };
    fuzz("gzip", ".csv.gz", unpack, |bytes, random| {
        let mut packed = gzip(&bytes);
        if random.next_u32() % 2 == 0 {
            change(&mut packed, &[], random);
        }
        packed
    });
}

#[test]
fn changed_parquet_files_are_read_or_refused() {
    fuzz("parquet", ".parquet", <[u8]>::to_vec, |bytes, _| bytes);
}

#[test]
fn changed_npy_files_are_read_or_refused() {
    fuzz("npy", ".npy", <[u8]>::to_vec, |bytes, _| bytes);
}

#[test]
fn changed_svmlight_files_are_read_or_refused() {
    fuzz("svmlight", ".svmlight", <[u8]>::to_vec, |bytes, _| bytes);
}

/// Every file of the corpus as it is: tables are read, and files that were damaged on purpose are refused.
#[test]
fn the_corpus_is_read_or_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut run = Run::new("corpus");
    for (name, bytes) in corpus("") {
        run.read(&bytes, &name);
        let read = relvec_cli::read_table(&folder().join(&name), ROWS);
        assert_eq!(read.is_err(), name.starts_with("damaged"), "{name}: {read:?}");
    }
    run.finish();
}

/// One byte changed at a time, at every place of the Parquet files where there is time for that: as in a file that a disk or
/// a network has damaged.
#[test]
fn parquet_files_with_one_changed_byte_are_read_or_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let files = corpus(".parquet");
    let mut run = Run::new("parquet-bytes");
    let places: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let step = if run.end.is_some() { 1 } else { (places / INPUTS).max(1) };
    let all = files.iter().flat_map(|(name, bytes)| (0..bytes.len()).map(move |place| (name, bytes, place)));
    for (name, bytes, place) in all.step_by(step) {
        for flip in if step == 1 { &[0xff, 0x01, 0x80, 0x55][..] } else { &[0xff] } {
            let mut changed = bytes.clone();
            changed[place] ^= flip;
            run.read(&changed, &format!("{name}, byte {place} ^ {flip:#x}"));
        }
    }
    run.finish();
}

/// The Parquet files of the corpus: plain and packed pages of both versions, dictionaries, lists of differences, nulls,
/// texts, decimals, nested values.
#[test]
#[ignore = "writes the Parquet files of the corpus again, which another version of the format's crate may do otherwise"]
fn the_corpus_is_written() {
    use parquet::basic::{Compression as Codec, Encoding};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    let numbers = "message table { required double a; required float b; required int64 y; }";
    let mixed = "message table { optional double a; required boolean b; required int32 c (INTEGER(8,true));
        required int64 d (INTEGER(64,false)); required int32 e (DECIMAL(9,2)); optional binary kind (UTF8); }";
    let nested = "message table { required double a; optional group b (LIST) { repeated group list { optional int32 element; } }
        required int32 day (DATE); required fixed_len_byte_array(2) half (FLOAT16); required binary y (UTF8); }";
    let writer = WriterProperties::builder;
    let zstd = Codec::ZSTD(Default::default());
    let gzip = Codec::GZIP(Default::default());
    let plain = writer().set_dictionary_enabled(false);
    let lengths = |encoding| writer().set_dictionary_enabled(false).set_encoding(encoding);
    let files = [
        ("plain", numbers, plain.clone()),
        ("snappy", numbers, plain.set_compression(Codec::SNAPPY)),
        ("dictionary", mixed, writer().set_compression(Codec::SNAPPY)),
        (
            "second",
            mixed,
            writer().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(zstd).set_dictionary_enabled(false),
        ),
        ("lengths", nested, lengths(Encoding::PLAIN).set_column_encoding("y".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        (
            "shared",
            mixed,
            lengths(Encoding::PLAIN)
                .set_column_encoding("kind".into(), Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("d".into(), Encoding::DELTA_BINARY_PACKED)
                .set_compression(gzip),
        ),
    ];
    for (name, schema, properties) in files {
        let schema = std::sync::Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
        let file = fs::File::create(folder().join(format!("{name}.parquet"))).unwrap();
        let mut writer = parquet::file::writer::SerializedFileWriter::new(file, schema, properties.build().into()).unwrap();
        for rows in [20, 11] {
            let mut group = writer.next_row_group().unwrap();
            while let Some(mut column) = group.next_column().unwrap() {
                fill(&mut column, rows);
                column.close().unwrap();
            }
            group.close().unwrap();
        }
        writer.close().unwrap();
    }
}

/// Some values for a column of any type; a null where a row number is divisible by 7 and nulls may be.
fn fill(column: &mut parquet::file::writer::SerializedColumnWriter<'_>, rows: usize) {
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::{ByteArray, FixedLenByteArray};
    let whole = |i: usize| (i * i % 17) as i64 - 3;
    let descriptor = match column.untyped() {
        ColumnWriter::BoolColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::Int32ColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::Int64ColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::FloatColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::DoubleColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::ByteArrayColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::FixedLenByteArrayColumnWriter(w) => w.get_descriptor().clone(),
        ColumnWriter::Int96ColumnWriter(_) => panic!("no such column"),
    };
    let most = descriptor.max_def_level();
    let is_there = |i: &usize| most == 0 || !i.is_multiple_of(7);
    let levels: Vec<i16> = (0..rows).map(|i| if is_there(&i) { most } else { 0 }).collect();
    let levels = (most > 0).then_some(&levels[..]);
    let repeated = vec![0; rows];
    let repeated = (descriptor.max_rep_level() > 0).then_some(&repeated[..]);
    let there: Vec<usize> = (0..rows).filter(is_there).collect();
    match column.untyped() {
        ColumnWriter::BoolColumnWriter(w) => {
            w.write_batch(&there.iter().map(|i| i % 3 == 0).collect::<Vec<_>>(), levels, repeated).unwrap();
        }
        ColumnWriter::Int32ColumnWriter(w) => {
            w.write_batch(&there.iter().map(|i| whole(*i) as i32).collect::<Vec<_>>(), levels, repeated).unwrap();
        }
        ColumnWriter::Int64ColumnWriter(w) => {
            w.write_batch(&there.iter().map(|i| whole(*i)).collect::<Vec<_>>(), levels, repeated).unwrap();
        }
        ColumnWriter::FloatColumnWriter(w) => {
            w.write_batch(&there.iter().map(|i| (*i as f32).sin()).collect::<Vec<_>>(), levels, repeated).unwrap();
        }
        ColumnWriter::DoubleColumnWriter(w) => {
            w.write_batch(&there.iter().map(|i| (*i as f64).cos()).collect::<Vec<_>>(), levels, repeated).unwrap();
        }
        ColumnWriter::ByteArrayColumnWriter(w) => {
            let texts: Vec<ByteArray> = there.iter().map(|i| ByteArray::from(&*format!("kind {}", i % 3))).collect();
            w.write_batch(&texts, levels, repeated).unwrap();
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(w) => {
            let halves: Vec<FixedLenByteArray> = there.iter().map(|i| vec![*i as u8, 0x3c].into()).collect();
            w.write_batch(&halves, levels, repeated).unwrap();
        }
        ColumnWriter::Int96ColumnWriter(_) => panic!("no such column"),
    }
}
