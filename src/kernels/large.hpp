// A row's regression on any number of features as a system of equations, in single precision.
#pragma once

#include <cstdint>
#include <vector>

#include "features.hpp"

namespace mixedals {

/// (matrix + ridge I) v = rhs with n unknowns. Grows to the largest that it holds and is used
/// again.
struct System {
    std::int64_t n = 0, ld = 0;      ///< ld: floats a row of the matrix, n rounded up to vectors
    std::vector<float> matrix, rhs;  ///< the upper triangle; zeros behind the first n of a row
    double square = 0;               ///< the targets' sum of w t^2

    void resize(std::int64_t unknowns);
};

/// Makes a row's system from its ratings.
class LargeSums {
  public:
    /// Sums of w z z^T, w t z and w t^2: v is the row's embedding.
    void primal(const Features& features, Span ratings, float shift, System& out);

    /// Z Z^T and t, for fewer ratings than features: Z^T v is the embedding. Weights are in Z and
    /// t.
    void dual(const Features& features, Span ratings, System& out);

  private:
    std::vector<float> rows_, targets_;
    std::vector<double> total_;
};

/// Z^T v of a dual system, `features.p` floats.
void dual_embedding(const Features& features, Span ratings, const float* v, float* x);

/// matrix + ridge I = U^T U, U in the matrix' place. The number of leading columns whose pivot
/// isn't lost in rounding.
std::int64_t factorise(System& system, float ridge);

/// Solves the system into `v` (ld floats); false where a pivot is lost. Its matrix is lost too.
bool solve_alone(System& system, float ridge, float* v);

/// A pivot below this share of its diagonal is made of rounding.
inline constexpr float least_pivot = 1e-5f;

}  // namespace mixedals
