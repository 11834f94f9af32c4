//! Model files of LIBSVM that are written, read, and predict the same.

use std::fs;
use std::path::Path;

use ndarray::{Array2, array};
use relvec_export::{Error, from_libsvm, to_libsvm};
use relvec_predict::{Model, Moderation};

fn pinned(name: &str) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../relvec/tests/pinned").join(format!("{name}.json"));
    Model::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

fn near(a: &Array2<f64>, b: &Array2<f64>, limit: f64) {
    assert_eq!(a.dim(), b.dim());
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= limit), "{a} instead of {b}");
}

#[test]
fn support_vector_machines_come_back() {
    let rows = array![[0.1, 0.2], [1.5, 0.3], [0.4, 2.0], [-1.0, -1.0]];
    for name in ["svc_two", "svc_one_vs_one", "nu_svc_probability", "svr", "nu_svr"] {
        let model = pinned(name);
        let text = to_libsvm(&model).unwrap();
        let again = from_libsvm(&text, Some(model.n_features)).unwrap();
        assert_eq!(to_libsvm(&again).unwrap(), text, "{name}");
        near(&again.decision_function(rows.view()).unwrap(), &model.decision_function(rows.view()).unwrap(), 1e-13);
        let known = model.margins.as_ref().is_some_and(|margins| !margins.sigmoids.is_empty());
        if known {
            let probabilities = |model: &Model| model.predict_probability(rows.view(), Moderation::Posterior).unwrap();
            near(&probabilities(&again), &probabilities(&model), 1e-9);
        }
    }
}

/// Three classes by hand: LIBSVM's pairs are (0, 1), (0, 2), (1, 2), and its values are positive for the first class.
#[test]
fn pairs_of_classes_are_in_the_order_of_libsvm() {
    let text = "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho 0.5 0.25 -1\nlabel 4 2 9\nnr_sv 1 1 1\nSV\n\
                1 2 1:1 \n-1 3 2:1 \n-2 -3 1:1 2:1 \n";
    let model = from_libsvm(text, None).unwrap();
    let x = array![[2.0, 5.0]];
    let f = model.decision_function(x.view()).unwrap();
    // (0, 1): 1 * 2 - 1 * 5 - 0.5; (0, 2): 2 * 2 - 2 * 7 - 0.25; (1, 2): 3 * 5 - 3 * 7 + 1. Ours are (0, 1), (0, 2), (1, 2) as
    // well.
    near(&f, &array![[3.5, 10.25, 5.0]], 1e-15);
    assert_eq!(model.predict_class(x.view()).unwrap(), [2]);
    assert_eq!(model.classes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["4", "2", "9"]);
}

#[test]
fn what_libsvm_does_not_hold_is_refused() {
    for (name, found) in [("rvr_rbf", "relevance vector machine"), ("svc_one_vs_rest", "one-versus-rest")] {
        let error = to_libsvm(&pinned(name)).unwrap_err();
        assert!(matches!(&error, Error::Unsupported { .. }) && error.to_string().contains(found), "{error}");
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    let text = to_libsvm(&pinned("nu_svc_probability")).unwrap();
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        if let Err(error) = from_libsvm(&text[..end], None) {
            assert!(matches!(error, Error::Text { .. }), "{error}");
        }
    }
    // Nor does any byte that is another make it panic.
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at) && text.is_char_boundary(at + 1)) {
        for other in ["9", "-", ":", " ", "\n", "e", "0 "] {
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            if let Ok(model) = from_libsvm(&changed, None) {
                assert!(to_libsvm(&model).is_ok(), "{changed}");
            }
        }
    }
    // Large numbers are no reason to take memory.
    let huge = text.replacen("total_sv 13", "total_sv 13000000000", 1).replacen("nr_class 2", "nr_class 12000000000", 1);
    assert!(from_libsvm(&huge, None).unwrap_err().to_string().contains("expected total_sv, 13000000000"));
    assert!(from_libsvm(&text, Some(usize::MAX)).unwrap_err().to_string().contains("expected at most"));
}
