//! dev
#[path = "../tests/support/mod.rs"]
mod support;
use relvec::*;
use std::time::Instant;
fn main() {
    let which: Vec<String> = std::env::args().skip(1).collect();
    let folder = support::shared("golden").unwrap();
    let doc: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("evidence_targets.json")).unwrap()).unwrap();
    for (name, case) in doc["cases"].as_object().unwrap() {
        let (x, t) = support::split_target(&support::read_csv(&folder.join(format!("{name}.csv"))));
        let gamma = case["gamma"].as_f64().unwrap();
        for w in &which {
            let rvm =
                Rvm { kernel: Rbf { gamma: gamma.into() }.into(), inference: Inference::from_name(w).unwrap(), ..Rvm::default() };
            let t0 = Instant::now();
            let (model, report) = rvm.fit(x.view(), &Targets::real(t.view()), &mut silent).unwrap();
            let drops = report.trace.windows(2).map(|w| w[0].log_evidence - w[1].log_evidence).fold(0.0, f64::max);
            println!(
                "{name} {w}: L {:.3} gap {:.2} (mackay {}) M {} sigma {:.4} its {} {:.2}s fall {:.1e} {:?} {:?}",
                model.log_evidence,
                case["best"].as_f64().unwrap() - model.log_evidence,
                case["log_evidence"]["mackay"],
                model.relevance.len(),
                model.noise_std().unwrap(),
                report.iterations,
                t0.elapsed().as_secs_f64(),
                drops,
                report.actions,
                report.certificate
            );
        }
    }
}
