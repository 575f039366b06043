// The views that kernels work on. They own nothing: bind.cpp checks and keeps what is behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mixedals {

/// The ratings of one side in compressed rows. Whoever makes one has checked that `indptr` rises
/// from 0 and that every index is in [0, n_columns).
struct Ratings {
    std::int64_t n_rows;
    std::int64_t n_columns;
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    const float* weights;  ///< null: every weight is 1

    std::int64_t count(std::int64_t row) const { return indptr[row + 1] - indptr[row]; }
};

/// Some consecutive ratings: those of a row, or a part of them.
struct Span {
    const std::int32_t* indices;
    const float* values;
    const float* weights;  ///< null: every weight is 1
    std::int64_t size;
    std::int64_t readable;  ///< indices from the first on, beyond `size` those of later rows

    Span part(std::int64_t first, std::int64_t n) const {
        return {indices + first, values + first, weights ? weights + first : nullptr, n,
                readable - first};
    }

    /// The column of the rating `ahead` of the k-th, for prefetching; the last where there is none.
    std::int64_t column_ahead(std::int64_t k, std::int64_t ahead) const {
        return indices[std::min(k + ahead, readable - 1)];
    }
};

inline Span span_of(const Ratings& ratings, std::int64_t row) {
    const std::int64_t first = ratings.indptr[row];
    return {ratings.indices + first, ratings.values + first,
            ratings.weights ? ratings.weights + first : nullptr, ratings.count(row),
            ratings.indptr[ratings.n_rows] - first};
}

/// A dense matrix, row after row.
struct Matrix {
    const float* data;
    std::int64_t rows;
    std::int64_t columns;

    const float* row(std::int64_t i) const { return data + i * columns; }
};

/// The rows of a tier: positions in its side, `n` of them.
struct Rows {
    const std::int32_t* data;
    std::int64_t n;
};

/// A row counts for so many ratings more than it has, for what it costs besides them.
inline constexpr std::int64_t row_cost = 32;

/// Cuts the listed rows into runs of about `target` ratings; entry i to i + 1 is one run.
inline std::vector<std::int64_t> balanced_runs(const Ratings& ratings, Rows rows,
                                               std::int64_t target) {
    std::vector<std::int64_t> cuts{0};
    std::int64_t load = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        load += ratings.count(rows.data[i]) + row_cost;
        if (load >= target || i + 1 == rows.n) {
            cuts.push_back(i + 1);
            load = 0;
        }
    }
    return cuts;
}

}  // namespace mixedals
