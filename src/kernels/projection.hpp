// The update of a tier's projection, all others fixed: the paper's equation als_proj_step_2.
#pragma once

#include <optional>

#include "features.hpp"

namespace mixedals {

/// The paper's sample: a rating is kept where a hash of its row, its column and `key` is below
/// `below`, so that the sample depends on no order.
struct Sample {
    std::uint64_t key;
    std::uint64_t below;
    const std::uint64_t* row_keys;     ///< one a row of the ratings
    const std::uint64_t* column_keys;  ///< one a column
};

/// What a projection is fitted to: the rows of its tier, their factors (rows.n x p), and
/// the common-space vectors of the other side, as features of width d.
struct ProjectionProblem {
    const Ratings& ratings;
    Rows rows;
    Matrix factors;
    const Features& features;
    const float* known_rows;  ///< what predictions hold besides, one a row of the ratings, or null
    std::optional<Sample> sample;
};

/// packed: sum over rows of pack(G_u) pack(x_u x_u^T)^T, d(d+1)/2 x p(p+1)/2, where G_u is the
/// Gram matrix of the row's features and pack takes the upper triangle, row after row.
/// rhs: sum over rows of (sum w t y) x_u^T, d x p.
void projection_sums(const ProjectionProblem& problem, double* packed, double* rhs, int n_threads);

/// Solves (Q^T Q + beta I) flatten(A) = Q^T r from those sums, into a (d x p). False if singular.
bool solve_projection(const double* packed, const double* rhs, int d, int p, double beta, float* a);

/// out (d x p) = sum over rows of G_u A x_u x_u^T; of all ratings, whatever the sample.
void projection_product(const ProjectionProblem& problem, const double* a, double* out,
                        int n_threads);

/// The right-hand side of projection_sums alone; of all ratings, whatever the sample.
void projection_rhs(const ProjectionProblem& problem, double* out, int n_threads);

}  // namespace mixedals
