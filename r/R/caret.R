caret_rvm <- list(
  label = "Relevance vector machine (relvec)",
  library = "relvec",
  type = c("Regression", "Classification"),
  parameters = data.frame(parameter = "kernel", class = "character", label = "kernel"),
  grid = function(x, y, len = NULL, search = "grid") {
    data.frame(kernel = utils::head(c("rbf", "matern52", "matern32", "rational_quadratic"), len))
  },
  fit = function(x, y, wts, param, lev, last, weights, classProbs, ...) {
    relvec::rvm(as.matrix(x), y, weights = wts, kernel = as.character(param$kernel), ...)
  },
  predict = function(modelFit, newdata, preProc = NULL, submodels = NULL) stats::predict(modelFit, as.matrix(newdata)),
  prob = function(modelFit, newdata, preProc = NULL, submodels = NULL) {
    as.data.frame(stats::predict(modelFit, as.matrix(newdata), type = "prob"), check.names = FALSE)
  },
  levels = function(x) x$facts$classes,
  predictors = function(x, ...) x$facts$features,
  tags = c("Kernel Method", "Relevance Vector Machines", "Accepts Case Weights"),
  sort = function(x) x
)
