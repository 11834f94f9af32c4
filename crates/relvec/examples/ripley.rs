//! Two classes, each a mixture of two Gaussians: calibrated probabilities from a handful of kernels.
//!
//! `cargo run --release --example ripley`

use ndarray::Array2;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use relvec::{Bernoulli, Moderation, Rbf, Rvm, Targets};

/// `n` points, the classes in turn; means as in Ripley (1996), variance 0.03.
fn mixture(n: usize, random: &mut rand_pcg::Pcg64) -> (Array2<f64>, Vec<usize>) {
    let means = [[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]];
    let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
    let x = Array2::from_shape_fn((n, 2), |(i, d)| {
        let noise: f64 = StandardNormal.sample(random);
        means[labels[i]][i / 2 % 2][d] + 0.03f64.sqrt() * noise
    });
    (x, labels)
}

fn main() -> relvec::Result<()> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let (x, labels) = mixture(250, &mut random);
    let (fresh, truth) = mixture(10_000, &mut random);

    let rvm = Rvm { kernel: Rbf { gamma: 4.0.into() }.into(), likelihood: Bernoulli::default().into(), ..Rvm::tipping2001() };
    let (model, _) = rvm.fit(x.view(), &Targets::classes(&labels, 2))?;
    let p = model.predict_probability(fresh.view(), Moderation::Posterior)?;
    let wrong = p.column(1).iter().zip(&truth).filter(|(p, t)| (**p > 0.5) != (**t == 1)).count();
    println!("{} relevance vectors, log evidence {:.2}", model.relevance.len(), model.log_evidence.unwrap());
    println!("{:.1} % of fresh points wrong (no classifier can do better than 8.9 %)", wrong as f64 / 100.0);

    println!("predicted  observed  points");
    for tenth in 0..10 {
        let range = tenth as f64 / 10.0..(tenth + 1) as f64 / 10.0;
        let inside: Vec<usize> = (0..truth.len()).filter(|i| range.contains(&p[[*i, 1]])).collect();
        let mean = |f: &dyn Fn(usize) -> f64| inside.iter().map(|i| f(*i)).sum::<f64>() / inside.len().max(1) as f64;
        println!("{:9.3} {:9.3} {:7}", mean(&|i| p[[i, 1]]), mean(&|i| truth[i] as f64), inside.len());
    }
    Ok(())
}
