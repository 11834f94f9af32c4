//! Types that may be sent between threads, and pools of threads if the system limits them.

use relvec::*;

/// Every public type can be sent to another thread and shared with it.
#[test]
fn public_types_are_send_and_sync() {
    fn both<T: Send + Sync>() {}
    macro_rules! check {
        ($($Type:ty),+ $(,)?) => { [$((stringify!($Type), both::<$Type> as fn())),+] };
    }
    let checked = check![
        Actions,
        ActionKind,
        Answer,
        Basis,
        Bernoulli,
        CSvc,
        CentreRule,
        CentreSearch,
        Centres,
        Certificate,
        ClassFunctions,
        ClassWeights,
        ColumnAction,
        Committee,
        Counts,
        DataScale,
        Decision,
        Decisions,
        Dictionary,
        DictionaryRule,
        Draws<'static>,
        Em,
        EncodedCell,
        EncodedColumn,
        Encoding,
        EpsilonSvr,
        Error,
        Evaluation,
        Expansion,
        Factor,
        FittedBasis,
        Formulation,
        Gamma,
        GammaRule,
        Gaussian,
        HeldOutScores,
        Hyperparameters,
        Hyperpriors,
        InUse,
        Inference,
        Interrupt,
        Kernel,
        KernelSearch,
        KernelTrial,
        Periodic,
        Query,
        RowPlan,
        Sum,
        SampledRows,
        Survey,
        ProcessTrial,
        LearnedKernel,
        KeptOutput,
        KeptRows,
        KeptStatistics,
        Label,
        LabelRegression,
        Landmarks,
        Laplacian,
        LeaveOneOut,
        Likelihood,
        Linear,
        LinearSpline,
        MacKay,
        Missing,
        RawCell,
        Margins,
        Matern32,
        Matern52,
        Model,
        Moderation,
        MultiClass,
        NuSvc,
        NuSvr,
        Interpolation,
        Policy,
        Poisson,
        Poly,
        Posterior,
        PosteriorRule,
        PrecisionPosterior,
        Prediction,
        Probabilities,
        ProcessFit,
        ProcessPrior,
        Progress,
        RationalQuadratic,
        Rbf,
        Adjustments,
        Report,
        Rvm,
        Scaling,
        Search,
        Sigmoid,
        SmallWeights,
        Softmax,
        Sparsity,
        SparsityRule,
        SparsityTrial,
        Start,
        SparseRow<'static>,
        SparseRows,
        Statistics,
        Sequential,
        Status,
        StoredRows,
        StudentT,
        Svm,
        SvmFunction,
        SvmProgress,
        SvmReport,
        Targets<'static>,
        Term,
        TracePoint,
        Validation,
        Variance,
        Variational,
        WeightPrior,
    ];
    // The list is complete: every name that the root exports, except for traits, functions, constants and what a caller
    // implements.
    let lib = include_str!("../../src/lib.rs");
    let names = lib.split("pub use ").skip(1).flat_map(|part| {
        let list = part.split_once("::").map_or("", |(_, names)| names.split(';').next().unwrap_or(""));
        list.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| n.starts_with(char::is_uppercase)).collect::<Vec<_>>()
    });
    let other = [
        "Blocks",
        "RowSource",
        "Observer",
        "SvmObserver",
        "Result",
        "FORMAT_VERSION",
        "MOST_THREADS",
        "FittedModel",
        "KernelGradient",
    ];
    for name in names.filter(|name| !other.contains(name)) {
        let known = |(checked, _): &(&str, fn())| checked.split('<').next() == Some(name);
        assert!(checked.iter().any(known), "{name} is not checked");
    }
}

#[test]
fn pools_have_the_requested_number_of_threads() {
    for threads in [1, 3] {
        assert_eq!(thread_pool(Some(threads)).unwrap().current_num_threads(), threads);
    }
    assert!(thread_pool(None).unwrap().current_num_threads() >= 1);
}
