"""The order of examples and tutorials: easy ones first, and those of one subject together."""

import re

ORDER = [
    # Tutorials.
    "first_regression",
    "first_classifier",
    "real_table",
    # Regression.
    "plot_sinc",
    "plot_sum_of_kernels",
    "plot_evidence",
    "plot_gap",
    "plot_forecast",
    "plot_reliable_intervals",
    "plot_feature_relevance",
    "plot_spectra",
    "plot_large_tables",
    # Noise.
    "plot_known_noise",
    "plot_outliers",
    "plot_counts",
    # Classes.
    "plot_mixture",
    "plot_calibration_rejection",
    "plot_decision_costs",
    "plot_breast_cancer",
    # Beside other models.
    "plot_rvm_svm_gp",
    "plot_rvm_or_trees",
]


class SortKey:
    """Place of a file in the order; files that are not named come last."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place, then the name."""
        name = re.sub(r"\.py$", "", filename)
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        """Stable text: Sphinx compares configurations by it."""
        return "<gallery order>"
