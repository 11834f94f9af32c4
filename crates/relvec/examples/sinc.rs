//! Regression with error bars: noisy sinc, the fit, and where the model is sure of itself.
//!
//! `cargo run --release --example sinc`

use ndarray::Array2;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use relvec::{LinearSpline, Rvm, Targets};

fn main() -> relvec::Result<()> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(1);
    let x = Array2::from_shape_fn((100, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 99.0);
    let t = x.column(0).mapv(|x| {
        let noise: f64 = StandardNormal.sample(&mut random);
        x.sin() / x + 0.2 * noise
    });

    // No width, no C, no epsilon: the linear spline has no parameter, the noise is learnt.
    let rvm = Rvm { kernel: LinearSpline::default().into(), ..Rvm::tipping2001() };
    let (model, report) = rvm.fit(x.view(), &Targets::real(t.view()))?;
    println!("{} of 100 rows are relevant: {:?}", model.relevance.len(), model.relevance);
    println!("log evidence {:.2}, {}", model.log_evidence.unwrap(), report.certificate.reason);
    println!("noise {:.3} (the truth is 0.2)", model.noise_std().unwrap_or(0.0));

    let grid = Array2::from_shape_fn((9, 1), |(i, _)| -10.0 + 2.5 * i as f64);
    let prediction = model.predict(grid.view())?;
    for (i, std) in prediction.std().iter().enumerate() {
        println!("y({:5.1}) = {:6.3} +- {:.3}", grid[[i, 0]], prediction.mean[i], std);
    }
    Ok(())
}
