// Normal equations of any number of features, in single precision, by register tiles.
#pragma once

#include <cstdint>
#include <vector>

#include "features.hpp"

namespace mixedals {

/// Rounded up to whole native vectors.
std::int64_t padded(std::int64_t n);

/// The upper triangle of a symmetric matrix, its factor, and the rows it is summed from.
/// Grows to the largest system that it meets and is used again.
class Workspace {
  public:
    /// Sums of w z z^T (upper triangle), w t z and w t^2 over a row's ratings.
    void sum(const Features& features, Span ratings, float shift);

    /// Solves (gram + ridge I) x = rhs; false where a pivot is lost in rounding.
    bool solve_primal(float ridge);

    /// The same x for a row with fewer ratings than features: Z^T (Z Z^T + ridge I)^-1 t.
    bool solve_dual(const Features& features, Span ratings, float ridge);

    /// gram + ridge I = U^T U for its first n rows and columns, U in its place, `ld` floats a row.
    /// The number of leading columns whose pivot isn't lost in rounding.
    std::int64_t factorise(std::int64_t n, std::int64_t ld, float ridge);

    const float* gram() const { return gram_.data(); }  ///< padded(p) floats a row
    const float* rhs() const { return rhs_.data(); }
    const float* x() const { return x_.data(); }
    double loss() const { return loss_; }  ///< squared error and penalty at x

  private:
    void substitute(std::int64_t n, std::int64_t ld, float* b) const;

    std::int64_t p_ = 0;
    std::vector<float> gram_, rows_, rhs_, x_;
    std::vector<double> total_;
    double square_ = 0, loss_ = 0;
};

}  // namespace mixedals
