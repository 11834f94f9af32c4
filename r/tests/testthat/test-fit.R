test_that("a formula and a matrix give the same model", {
  by_formula <- rvm(dist ~ speed, cars)
  by_matrix <- rvm(as.matrix(cars["speed"]), cars$dist)
  new <- data.frame(speed = c(4, 11.3, 25))
  for (type in c("response", "se", "interval")) {
    expect_identical(unname(predict(by_formula, new, type = type)), unname(predict(by_matrix, as.matrix(new), type = type)))
  }
  expect_equal(unname(fitted(by_formula)), unname(predict(by_matrix)))
})

test_that("the default fit is that of Python and of the command", {
  # RVR().fit(cars[["speed"]], cars["dist"]).predict([[4], [11.3], [25]], return_std=True); python/tests/test_r_package.py
  # compares these numbers with Python.
  model <- rvm(dist ~ speed, cars)
  new <- data.frame(speed = c(4, 11.3, 25))
  expect_equal(unname(predict(model, new)), c(9.690625499273871, 25.539027567331004, 82.3829162328817), tolerance = 1e-8)
  expect_equal(unname(predict(model, new, type = "se")), c(20.45684783438109, 15.150168454362909, 15.784007643506705), tolerance = 1e-8)
})

test_that("intervals are those of the predicted normal distribution", {
  model <- rvm(dist ~ speed, cars)
  found <- predict(model, type = "interval", level = 0.8)
  expect_identical(colnames(found), c("fit", "lwr", "upr"))
  half <- qnorm(0.9) * unname(predict(model, type = "se"))
  expect_equal(unname(found[, "upr"] - found[, "fit"]), half, tolerance = 1e-12)
  expect_equal(unname(found[, "fit"] - found[, "lwr"]), half, tolerance = 1e-12)
  expect_error(predict(model, level = 1, type = "interval"), "level")
})

test_that("95 % intervals cover new rows, and the model is sparse", {
  set.seed(1)
  draw <- function(n) {
    x <- runif(n, -10, 10)
    data.frame(x = x, y = ifelse(x == 0, 1, sin(x) / x) + 0.1 * rnorm(n))
  }
  model <- rvm(y ~ x, draw(100))
  new <- draw(1000)
  found <- predict(model, new, type = "interval")
  inside <- mean(found[, "lwr"] < new$y & new$y < found[, "upr"])
  expect_gt(inside, 0.92)
  expect_lt(inside, 0.98)
  expect_lt(length(model$facts$relevance), 20)
  expect_equal(model$facts$noise_std, 0.1, tolerance = 0.2)
})

test_that("factors are coded as in lm, also for new rows with some levels only", {
  model <- rvm(len ~ supp + dose, ToothGrowth)
  expect_identical(model$facts$features, c("suppVC", "dose"))
  new <- data.frame(supp = factor("VC", c("VC")), dose = 1)
  coded <- rvm(cbind(suppVC = as.numeric(ToothGrowth$supp == "VC"), dose = ToothGrowth$dose), ToothGrowth$len)
  expect_identical(unname(predict(model, new)), unname(predict(coded, matrix(c(1, 1), 1))))
  expect_error(predict(model, data.frame(supp = "XX", dose = 1)), "new level")
})

test_that("classes are a factor, characters or logical values", {
  model <- rvm(Species ~ ., iris)
  expect_s3_class(predict(model, iris), "factor")
  expect_identical(levels(predict(model)), levels(iris$Species))
  expect_gt(mean(predict(model) == iris$Species), 0.95)
  probability <- predict(model, iris, type = "prob")
  expect_identical(colnames(probability), levels(iris$Species))
  expect_equal(unname(rowSums(probability)), rep(1, 150))
  expect_identical(as.integer(predict(model, type = "class")), unname(apply(probability, 1, which.max)))

  two <- iris[51:150, ]
  virginica <- two$Species == "virginica"
  by_logical <- rvm(as.matrix(two[1:4]), virginica)
  expect_type(predict(by_logical), "logical")
  by_text <- rvm(as.matrix(two[1:4]), as.character(two$Species))
  expect_equal(unname(predict(by_logical, type = "prob")), unname(predict(by_text, type = "prob")))
  expect_identical(unname(predict(by_logical)), unname(predict(by_text) == "virginica"))
})

test_that("a weight of 2 equals a row twice", {
  two <- table_of_two()
  weights <- rep(c(1, 2), 30)
  twice <- rep(1:60, weights)
  weighted <- rvm(two$x, two$y, weights = weights)
  repeated <- rvm(two$x[twice, ], two$y[twice])
  expect_equal(predict(weighted, two$x), predict(repeated, two$x), tolerance = 1e-6)
  by_formula <- rvm(y ~ u + v, data.frame(two$x, y = two$y, w = weights), weights = w)
  expect_identical(unname(predict(by_formula)), unname(predict(weighted)))
})

test_that("rows with missing values follow na.action", {
  holes <- transform(airquality, Month = factor(Month))
  model <- rvm(Ozone ~ Wind + Month, holes)
  expect_identical(nobs(model), sum(!is.na(holes$Ozone)))
  expect_length(model$na.action, sum(is.na(holes$Ozone)))
  new <- data.frame(Wind = c(10, NA), Month = factor(5, 5:9))
  expect_identical(is.na(unname(predict(model, new))), c(FALSE, TRUE))
  expect_identical(is.na(predict(model, new, type = "interval")[, "upr"]), c(`1` = FALSE, `2` = TRUE))
  expect_length(predict(model, new, na.action = na.omit), 1)
  expect_error(rvm(Ozone ~ Wind, airquality, na.action = na.fail), "missing values")
  expect_error(rvm(cbind(a = c(1, NA, 3)), 1:3), "x\\[2, 1\\] = NA: expected a finite number")
  expect_error(rvm(1:3, c(1, Inf, 3)), "y\\[2\\] = Inf")
})

test_that("noise, counts and outliers have their likelihoods", {
  two <- table_of_two()
  fixed <- rvm(two$x, two$y, likelihood = list(gaussian = list(noise_variance = 0.04)))
  expect_equal(fixed$facts$noise_std, 0.2)
  counts <- round(exp(1 + two$x[, 1]))
  model <- rvm(two$x, counts, likelihood = "poisson")
  found <- predict(model, type = "interval")
  expect_true(all(found[, c("lwr", "upr")] == round(found[, c("lwr", "upr")])))
  expect_true(all(predict(model) > 0))
  outliers <- two$y
  outliers[c(7, 30)] <- 8
  error <- function(model) mean((predict(model, two$x) - two$y)[-c(7, 30)]^2)
  expect_lt(error(rvm(two$x, outliers, likelihood = "student_t")), error(rvm(two$x, outliers)) / 2)
})

test_that("methods agree with each other", {
  model <- rvm(dist ~ speed, cars)
  expect_equal(unname(fitted(model) + residuals(model)), cars$dist)
  expect_identical(nobs(model), 50L)
  # The expansion by hand: y(x) = w_0 + sum_m w_m exp(-gamma (x - c_m)^2).
  weights <- coef(model)
  centres <- cars$speed[as.integer(names(weights)[-1])]
  by_hand <- weights[1] + exp(-model$facts$kernel$rbf$gamma * outer(c(7, 21), centres, "-")^2) %*% weights[-1]
  expect_equal(unname(predict(model, data.frame(speed = c(7, 21)))), by_hand[, 1], tolerance = 1e-9)
  text <- capture.output(print(summary(model)))
  expect_match(text, "^kernel +rbf, gamma", all = FALSE)
  expect_match(text, "^root mean squared residual +1[0-9]", all = FALSE)
  expect_match(text, "Largest weights", all = FALSE)
  expect_error(residuals(rvm(Species ~ ., iris)), "residuals are of regression")
  expect_identical(ncol(coef(rvm(Species ~ ., iris))), 3L)
})

test_that("figures are drawn for each kind of model", {
  file <- new_file(".pdf")
  grDevices::pdf(file)
  two <- table_of_two()
  for (model in list(rvm(dist ~ speed, cars), rvm(two$x, two$y), rvm(Species ~ ., iris), rvm(cars$speed, cars$dist > 40))) {
    expect_identical(plot(model, ylim = c(-1, 2), main = "title"), model)
  }
  grDevices::dev.off()
  expect_gt(file.size(file), 5000)
})

test_that("warnings name the consequence", {
  two <- table_of_two()
  expect_warning(rvm(two$x, two$y, max_iterations = 1), "did not converge in 1 iteration: the model is the best so far")
  model <- suppressWarnings(rvm(two$x, two$y, max_iterations = 1))
  expect_match(capture.output(print(summary(model))), "^warning: the fit did not converge", all = FALSE)
  few <- 1:12
  expect_warning(rvm(two$x[few, ], two$y[few], kernel = "rbf", kpar = list(gamma = 50), weight_prior = "ard", sparsity = 0),
                 "the model interpolates the training rows, and its intervals are too narrow. Leave out weight_prior")
  known <- list(gaussian = list(noise_variance = 1e-24))
  suppressWarnings(expect_warning(
    rvm(two$x, two$y, kpar = list(sigma = 0.5), weight_prior = "ard", likelihood = known), "the given noise is too small to be reached"
  ))
  expect_warning(rvm(two$x, two$y, weights = rep(1e-4, 60)), "weights of 60 rows sum to 0.006")
  set.seed(2)
  expect_warning(rvm(matrix(rnorm(60)), rnorm(60)), "found nothing to learn")
})

test_that("bad input is refused with what was found and expected", {
  two <- table_of_two()
  expect_error(rvm(two$x), "y is missing")
  expect_error(rvm(two$x, 1:3), "y has 3 values: expected 60")
  expect_error(rvm(two$x, two$x), "y has 2 columns: expected one target")
  expect_error(rvm(two$x, two$y, weights = 1), "weights has 1 value: expected 60")
  expect_error(rvm(two$x, two$y, weights = c(-1, rep(1, 59))), "row 1 is -1")
  expect_error(rvm(iris, two$y), "column Species, which is no number")
  expect_error(rvm(two$x, two$y, type = "classification"), "type = \"classification\", but y is of class numeric")
  expect_error(rvm(two$x, factor(rep("a", 60))), "y has 1 level: expected at least 2 classes")
  expect_error(rvm(two$x, two$y, sparsness = 1), "unknown field `sparsness`")
  expect_error(rvm(two$x, two$y, likelihood = "normal"), "unknown variant `normal`")
  expect_error(rvm(two$x, two$y, NULL, "rbfdot", "automatic", NULL, 3), "without a name")
  expect_error(rvm(dist ~ 1, cars), "no features")
  expect_error(rvm(~speed, cars), "no response")
  expect_error(rvm(dist ~ speed + offset(speed), cars), "offset")
  model <- rvm(two$x, two$y)
  expect_error(predict(model, matrix(1, 2, 3)), "newdata has 3 columns: expected 2")
  expect_error(predict(model, data.frame(u = 1)), "no column v: expected u, v")
  expect_error(predict(model, type = "prob"), "the model is a regression")
  expect_error(predict(rvm(Species ~ ., iris), type = "se"), "the model has classes")
})

test_that("Ctrl-C ends a fit as an interrupt", {
  skip_on_os("windows")
  set.seed(3)
  # Hundreds of kernels are needed: without an interrupt the fit takes more than 20 seconds.
  x <- matrix(rnorm(60000), ncol = 3)
  y <- sin(4 * x[, 1]) * cos(4 * x[, 2]) + sin(4 * x[, 3]) + 0.01 * rnorm(20000)
  kill <- sprintf("(sleep 1; kill -INT %d) &", Sys.getpid())
  began <- proc.time()[["elapsed"]]
  ended <- tryCatch({
    system(kill)
    rvm(x, y, kernel = "rbf", kpar = list(gamma = 3), weight_prior = "ard", dictionary = "all")
    "converged"
  }, interrupt = function(condition) "interrupted")
  expect_identical(ended, "interrupted")
  expect_lt(proc.time()[["elapsed"]] - began, 15)
})
