use ndarray::{Array1, Array2, array};
use relvec::{Rvm, Targets};

fn main() -> relvec::Result<()> {
    let x = Array2::from_shape_fn((100, 1), |(i, _)| (i as f64 - 49.5) / 5.0);
    let t = Array1::from_shape_fn(100, |i| x[[i, 0]].sin() / x[[i, 0]] + 0.1 * (1000.0 * (i * i) as f64).sin());
    let (model, report) = Rvm::default().fit(x.view(), &Targets::real(t.view()))?;
    println!("{} of 100 rows are centres, {:?}", model.relevance.len(), report.status);
    // 9 of 100 rows are centres, Converged
    let prediction = model.predict(array![[3.0]].view())?;
    println!("y(3) = {:.2} +- {:.2}", prediction.mean[0], prediction.std()[0]);
    // y(3) = 0.02 +- 0.07
    Ok(())
}
