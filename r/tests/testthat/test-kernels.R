test_that("kernels of kernlab have kernlab's values", {
  skip_if_not_installed("kernlab")
  two <- table_of_two()
  x <- two$x + 1
  kernels <- list(
    rbfdot = list(sigma = 0.7), polydot = list(degree = 2, scale = 0.5, offset = 1.5), vanilladot = list(),
    tanhdot = list(scale = 0.1, offset = 0.2), splinedot = list()
  )
  for (name in names(kernels)) {
    # Each weight with a precision: the prior of a process needs a positive definite kernel, and so does a healed mean.
    model <- suppressWarnings(rvm(x, two$y, kernel = name, kpar = kernels[[name]], weight_prior = "ard", variance = "posterior"))
    weights <- coef(model)
    rows <- as.integer(names(weights)[-1])
    theirs <- do.call(getExportedValue("kernlab", name), kernels[[name]])
    values <- outer(1:60, rows, Vectorize(function(i, m) theirs(x[i, ], x[m, ])))
    expect_gt(length(rows), 0)
    expect_equal(unname(predict(model)), weights[[1]] + (values %*% weights[-1])[, 1], tolerance = 1e-8, info = name)
  }
  one <- rvm(dist ~ speed, cars, kernel = "laplacedot", kpar = list(sigma = 0.1))
  rows <- as.integer(names(coef(one))[-1])
  theirs <- kernlab::kernelMatrix(kernlab::laplacedot(0.1), as.matrix(cars$speed), as.matrix(cars$speed[rows]))
  expect_equal(unname(predict(one)), coef(one)[[1]] + (theirs@.Data %*% coef(one)[-1])[, 1], tolerance = 1e-8)
})

test_that("widths are learned unless they are given", {
  model <- rvm(dist ~ speed, cars)
  given <- rvm(dist ~ speed, cars, kpar = list(sigma = 0.01))
  expect_equal(given$facts$kernel$rbf$gamma, 0.01)
  expect_equal(rvm(dist ~ speed, cars, kernel = "rbf", kpar = "automatic")$facts$kernel, model$facts$kernel)
  each <- rvm(Sepal.Length ~ Sepal.Width + Petal.Length, iris, kpar = list(sigma = c(0.5, 0.1)))
  expect_equal(each$facts$kernel$rbf$gamma, c(0.5, 0.1))
  expect_identical(names(rvm(dist ~ speed, cars, kernel = "matern52")$facts$kernel), "matern52")
  expect_equal(rvm(dist ~ speed, cars, kernel = "polydot")$facts$kernel$poly$degree, 1)
})

test_that("kernels and parameters that are not known are refused", {
  two <- table_of_two()
  expect_error(rvm(two$x, two$y, kernel = "besseldot"), "kernel = \"besseldot\": expected one of rbfdot")
  expect_error(rvm(two$x, two$y, kernel = kernlab_kernels), "kernel = list: expected one of")
  expect_error(rvm(two$x, two$y, kernel = "laplacedot"), "Euclidean distance")
  expect_error(rvm(two$x, two$y, kpar = list(gamma = 1)), "kpar of rbfdot: found gamma, expected \"automatic\" or a list of sigma")
  expect_error(rvm(two$x, two$y, kernel = "vanilladot", kpar = list(sigma = 1)), "a list of no parameters")
  expect_error(rvm(two$x, two$y, kpar = 1), "kpar of rbfdot: found numeric")
  expect_error(rvm(two$x, two$y, kpar = list(sigma = -1)), "gamma = -1")
})

test_that("the model list of caret trains, predicts and tunes", {
  skip_if_not_installed("caret")
  set.seed(4)
  control <- caret::trainControl(method = "cv", number = 3)
  found <- caret::train(dist ~ speed, cars, method = caret_rvm, trControl = control, tuneLength = 2)
  expect_identical(nrow(found$results), 2L)
  expect_lt(min(found$results$RMSE), sd(cars$dist))
  classes <- caret::train(iris[1:4], iris$Species, method = caret_rvm,
                          trControl = caret::trainControl(method = "cv", number = 3, classProbs = TRUE), tuneLength = 1)
  expect_gt(classes$results$Accuracy, 0.9)
  probability <- predict(classes, iris[c(1, 150), 1:4], type = "prob")
  expect_identical(colnames(probability), levels(iris$Species))
  expect_gt(probability[1, "setosa"], 0.9)
})

test_that("models are predicted beside kernlab, whose class is called rvm as well", {
  skip_if_not_installed("kernlab")
  model <- rvm(dist ~ speed, cars)
  suppressPackageStartupMessages(library(kernlab))
  on.exit(detach("package:kernlab"))
  expect_identical(unname(predict(model, cars)), unname(fitted(model)))
})
