// What a row's regression sees of the other side: one vector of features a column.
#pragma once

#include <cstdint>

#include "lanes.hpp"
#include "memory.hpp"
#include "ratings.hpp"

namespace mixedals {

/// Up to this many features, a row of features and its target fit in one or two registers.
inline constexpr int max_small = 15;

/// Features of every column, padded with zeros to `stride` floats a row.
///
/// Where p <= max_small, lane p holds minus the known part of the column's predictions, so that
/// adding a rating to that lane gives the regression's target. Larger p keep it in `known`.
struct Features {
    int p;
    std::int64_t stride;
    Buffer<float> data;
    const float* known;  ///< null: nothing known

    const float* row(std::int64_t column) const { return data.data() + column * stride; }

    void prefetch_row(std::int64_t column) const {
        constexpr std::int64_t line = 64 / sizeof(float);
        for (std::int64_t i = 0; i < stride; i += line) prefetch(row(column) + i);
    }

    /// What the k-th rating leaves to be explained: less its column's known part, and `shift`.
    float target(const Span& ratings, std::int64_t k, float shift) const {
        return ratings.values[k] - shift - (known ? known[ratings.indices[k]] : 0.0f);
    }
};

/// Features are prefetched so many ratings ahead: they lie anywhere in a table that caches may not
/// hold. Rows of many features are several cache lines each, and fewer of them are in flight.
inline constexpr std::int64_t prefetch_small = 24, prefetch_large = 4;

/// z_j = projection^T common_j, or its first `width` numbers where `projection` (d x width) is
/// null; then 1 where `with_bias`. `known` (one a row of `common`, or null) is what a prediction
/// holds besides.
Features make_features(Matrix common, const float* known, const float* projection, int width,
                       bool with_bias, int n_threads);

/// out[rows[i]] = projection factors_i, zeros behind where `projection` (d x p) is null.
void to_common(Matrix factors, const float* projection, Rows rows, float* out, std::int64_t d,
               int n_threads);

}  // namespace mixedals
