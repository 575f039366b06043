// How well a row's ridge regression predicts each of its ratings from the others, at several sizes.
#pragma once

#include "features.hpp"

namespace mixedals {

/// For each listed row i and each of the rising `sizes` p, the squared error of leaving one out,
///     sum over its ratings of w (z . x - (value - known))^2,
/// where z are the first p features and x is the row's ridge regression on them by its *other*
/// ratings; into errors (rows.n x n_sizes).
///
/// Nothing is fitted again: with h = z^T (Z^T W Z + ridge I)^-1 z, the residual without a rating is
/// the residual over 1 - w h. Z^T W Z = U^T U holds for every leading block of the matrix and of U,
/// so v = U^-T z gives h and the prediction at every p in one substitution: they are sums over the
/// first p numbers of v^2, and of v (U^-T Z^T W t).
///
/// Infinite where rounding leaves nothing to be told: a lost pivot, 1 - w h near 0, an overflow.
/// Rows don't depend on one another, nor on the number of threads.
void leave_one_out(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
                   const std::int32_t* sizes, std::int64_t n_sizes, double* errors, int n_threads);

}  // namespace mixedals
