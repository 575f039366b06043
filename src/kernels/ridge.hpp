// One ridge regression a row: the half-step of alternating least squares.
#pragma once

#include "features.hpp"

namespace mixedals {

/// For each listed row, the x that minimises
///     sum over its ratings of w (z . x - (value - known))^2  +  ridge |x|^2
/// into factors (rows.n x features.p), that minimum into loss, and |x|^2 into square.
///
/// A singular system (ridge near 0) gives the least-norm solution. A row without ratings gives
/// zeros. Rows don't depend on one another, nor on the number of threads. A row whose sums
/// overflow gets a loss that is not finite.
void solve_rows(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
                float* factors, double* loss, double* square, int n_threads);

}  // namespace mixedals
