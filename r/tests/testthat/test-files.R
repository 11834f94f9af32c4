# The models that every version must read, and what Python predicts from them: copied beside this file when the package is built by
# `cargo xtask test r`, or taken from the checkout.
pinned <- c("pinned", "../../../crates/relvec/tests/pinned")
pinned <- pinned[dir.exists(pinned)][1]

test_that("model files predict what Python predicts", {
  expect_false(is.na(pinned))
  expected <- jsonlite::fromJSON(file.path(pinned, "predictions.json"))
  new <- expected$rows
  compared <- 0
  for (name in setdiff(names(expected), c("rows", "kernel_rows", "rvr_precomputed", "rvr_given", "rvr_outputs", "rvr_outputs_healed"))) {
    model <- read_rvm(file.path(pinned, paste0(name, ".json")))
    own <- expected[[name]]
    if (is.null(own$mean) && model$facts$is_classifier) {
      expect_equal(as.character(predict(model, new)), as.character(own$prediction), info = name)
      if (!is.null(own$probability)) {
        expect_lt(max(abs(unname(predict(model, new, type = "prob")) - own$probability)), 1e-12, label = name)
      }
    } else {
      mean <- if (is.null(own$mean)) own$prediction else own$mean
      expect_lt(max(abs(unname(predict(model, new)) - mean)), 1e-12, label = name)
      if (!is.null(own$std)) expect_lt(max(abs(unname(predict(model, new, type = "se")) - own$std)), 1e-12, label = name)
    }
    compared <- compared + 1
  }
  expect_gt(compared, 30)
})

test_that("models that need their caller are refused", {
  for (name in c("rvr_precomputed", "rvr_given")) expect_error(read_rvm(file.path(pinned, paste0(name, ".json"))), "computed by its caller")
  expect_error(read_rvm(file.path(pinned, "rvr_outputs.json")), "predicts 2 targets: expected a model of one target")
})

test_that("models survive saveRDS and files in a new session", {
  model <- rvm(dist ~ speed, cars)
  rds <- new_file(".rds")
  json <- new_file(".json")
  saveRDS(model, rds)
  write_rvm(model, json)
  new <- data.frame(speed = c(3, 12.5, 30))
  expect_identical(predict(readRDS(rds), new, type = "interval"), predict(model, new, type = "interval"))
  expect_identical(unname(predict(read_rvm(json), new, type = "se")), unname(predict(model, new, type = "se")))
  code <- sprintf("library(relvec); cat(sprintf('%%a', predict(readRDS('%s'), data.frame(speed = 12.5))))", rds)
  printed <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE)
  expect_identical(printed, sprintf("%a", predict(model, data.frame(speed = 12.5))))
})

test_that("damaged and missing files are refused", {
  expect_error(read_rvm("none.json"), "none.json: no such file")
  path <- new_file(".json")
  writeLines("{}", path)
  expect_error(read_rvm(path), "model file")
  model <- rvm(dist ~ speed, cars)
  writeLines(sub("\"n_rows\":50", "\"n_rows\":51", model$json), path)
  expect_error(read_rvm(path), "checksum")
  expect_error(write_rvm(1, path), "model is of class numeric")
})

test_that("categories and missing cells of a file are encoded", {
  # Written by the command from a table with a category and a missing number.
  model <- read_rvm("encoded.json")
  new <- data.frame(colour = factor(c("red", "blue", NA)), size = c(1.5, NA, 2.5), unused = 1:3)
  # What `relvec predict` writes for this table.
  expect_lt(max(abs(unname(predict(model, new)) - c(1.9322136491504622, 0.9436287217011365, 0.6745505108849947))), 1e-12)
  std <- c(0.12555455589518305, 0.14822087140799553, 0.14605280308997906)
  expect_lt(max(abs(unname(predict(model, new, type = "se")) - std)), 1e-12)
  expect_error(predict(model, data.frame(colour = "red")), "newdata has no column size")
  expect_error(predict(model, data.frame(colour = 1, size = 2)), "row 1: column `colour`: found `1`")
})
