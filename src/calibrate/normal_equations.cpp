// SPDX-License-Identifier: Apache-2.0
#include "normal_equations.hpp"

#include <cmath>
#include <utility>

namespace chokepoint::calibrate {

bool NormalEquations::factorise() {
  for (std::size_t j = 0; j < size_; ++j) {
    double diagonal = at(j, j);
    for (std::size_t k = 0; k < j; ++k) diagonal -= at(j, k) * at(j, k);
    if (!(diagonal > 0)) return false;
    diagonal = std::sqrt(diagonal);
    at(j, j) = diagonal;
    for (std::size_t i = j + 1; i < size_; ++i) {
      double sum = at(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
      at(i, j) = sum / diagonal;
    }
  }
  return true;
}

std::vector<double> NormalEquations::solve(std::vector<double> b) const {
  const auto factor = [this](std::size_t row, std::size_t column) { return matrix_[row * size_ + column]; };
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= factor(i, k) * b[k];
    b[i] /= factor(i, i);
  }
  for (std::size_t i = size_; i-- > 0;) {
    for (std::size_t k = i + 1; k < size_; ++k) b[i] -= factor(k, i) * b[k];
    b[i] /= factor(i, i);
  }
  return b;
}

std::vector<double> NormalEquations::solution() const { return solve(right_); }

std::vector<double> NormalEquations::inverse_diagonal() const {
  std::vector<double> diagonal(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    std::vector<double> unit(size_, 0.0);
    unit[i] = 1;
    diagonal[i] = solve(std::move(unit))[i];
  }
  return diagonal;
}

}  // namespace chokepoint::calibrate
