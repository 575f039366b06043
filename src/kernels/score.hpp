// Predictions: dot products of rows of two common-space matrices.
#pragma once

#include "ratings.hpp"

namespace mixedals {

/// out[i] = left[left_rows[i]] . right[right_rows[i]]; NaN where either row is -1.
void predict_pairs(Matrix left, Matrix right, const std::int32_t* left_rows,
                   const std::int32_t* right_rows, std::int64_t n, float* out, int n_threads);

/// out[i * right.rows + j] = left_i . right_j.
void predict_grid(Matrix left, Matrix right, float* out, int n_threads);

/// For every query the k items of greatest query . item, best first, equal ones by position;
/// `left_out` has each query's items that may not appear, ascending. Behind the last item that
/// there is, ids are -1 and scores NaN. Scores that are NaN never appear.
void top_k(Matrix queries, Matrix items, std::int64_t k, const std::int64_t* left_out_indptr,
           const std::int32_t* left_out, std::int32_t* ids, float* scores, int n_threads);

}  // namespace mixedals
