// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small dense symmetric systems, up to some hundred unknowns.
#include <cstddef>
#include <vector>

namespace chokepoint::calibrate {

/// A symmetric positive definite matrix; only the lower triangle is kept up.
class NormalEquations {
 public:
  explicit NormalEquations(std::size_t size) : size_(size), matrix_(size * size, 0.0), right_(size, 0.0) {}
  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return matrix_[row * size_ + column]; }  ///< row >= column
  double& right(std::size_t row) { return right_[row]; }

  /// Cholesky factor in place. False when the matrix is not positive definite.
  bool factorise();
  /// After factorise(): the solution for the right side.
  std::vector<double> solution() const;
  /// After factorise(): the diagonal of the inverse.
  std::vector<double> inverse_diagonal() const;

 private:
  std::vector<double> solve(std::vector<double> b) const;
  std::size_t size_;
  std::vector<double> matrix_;
  std::vector<double> right_;
};

}  // namespace chokepoint::calibrate
