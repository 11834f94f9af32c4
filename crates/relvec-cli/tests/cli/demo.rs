//! The demo needs nothing and writes its figures.

use super::support::Folder;

#[test]
fn the_demo_prints_a_table_and_writes_four_figures() {
    let folder = Folder::new();
    let run = folder.ok("demo --out figures/here");
    for word in
        ["sin(x)/x", "mixtures", "relevance vectors", "log evidence", "nats", "true: 0.2", "best possible rule", "converged"]
    {
        assert!(run.stdout.contains(word), "{word}: {}", run.stdout);
    }
    assert_eq!(run.stderr, "");
    for name in ["sinc", "mixture"] {
        let svg = folder.read(&format!("figures/here/{name}.svg"));
        assert!(svg.contains("<svg") && svg.contains("relevance vectors"), "{name}");
        let png = std::fs::read(folder.path(&format!("figures/here/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000, "{name}");
    }
    // Twice the same, and over the old files.
    let svg = folder.read("figures/here/mixture.svg");
    assert_eq!(folder.ok("demo --out figures/here").stdout, run.stdout);
    assert_eq!(folder.read("figures/here/mixture.svg"), svg);
}
