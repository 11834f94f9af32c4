"""Named settings."""

import numpy as np
import pytest
import relvec
from numpy.testing import assert_array_equal
from relvec import RVC, RVR, presets
from sklearn.base import clone
from support import sinc, two_classes


def test_tipping2001_gives_the_settings_of_the_papers():
    assert relvec.presets is presets
    regressor, classifier = RVR(**presets.tipping2001()), RVC(**presets.tipping2001(task="classify"))
    assert (regressor.gamma, regressor.sparsity, regressor.variance) == ("scale", 0.0, "posterior")
    assert (classifier.gamma, classifier.sparsity) == ("scale", 0.0)
    for model in (regressor, classifier):
        assert model.kernel == "rbf" and model.fit_intercept and model.search is None


def test_gamma_is_passed_on_as_it_is():
    X, t = sinc()
    scales = np.array([0.1])
    model = RVR("matern52", **presets.tipping2001(scales), folds=3)
    assert model.gamma is scales
    assert clone(model).fit(X, t).gamma_ == 0.1
    C, y = two_classes()
    own = RVC(**presets.tipping2001(0.5, task="classify")).fit(C, y)
    assert_array_equal(own.dual_coef_, RVC(gamma=0.5, sparsity=0.0, weight_prior="ard").fit(C, y).dual_coef_)


def test_an_unknown_task_names_the_known_ones():
    with pytest.raises(ValueError, match="task = 'rank': expected one of 'regress', 'classify'"):
        presets.tipping2001(task="rank")
