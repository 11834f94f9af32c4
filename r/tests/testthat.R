library(testthat)
library(relvec)

test_check("relvec")
