// Normal equations of up to 15 features: a row of features and its target in one register (or two).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "features.hpp"
#include "lanes.hpp"

namespace mixedals {

/// Ratings summed in single precision before the sum goes into double precision.
inline constexpr std::int64_t chunk_ratings = 2048;

/// Sums over some ratings of w (z, t) (z, t)^T, where t is the target: the Gram matrix in the
/// first P rows and columns, the right-hand side in row P, the target's square at (P, P).
template <int P>
struct SmallSums {
    static constexpr int lanes = P < 8 ? 8 : 16;
    std::array<std::array<double, lanes>, P + 1> sum;

    SmallSums() {
        for (auto& row : sum) row.fill(0.0);
    }

    /// Adds ratings, `shift` taken from each.
    void add(const Features& features, Span ratings, float shift) {
        for (std::int64_t first = 0; first < ratings.size; first += chunk_ratings) {
            const Span chunk = ratings.part(first, std::min(chunk_ratings, ratings.size - first));
            if (chunk.weights)
                add_chunk<true>(features.data.data(), chunk, shift, std::make_index_sequence<P>{});
            else
                add_chunk<false>(features.data.data(), chunk, shift, std::make_index_sequence<P>{});
        }
    }

  private:
    template <bool weighted, std::size_t... J>
    void add_chunk(const float* features, Span ratings, float shift, std::index_sequence<J...>) {
        using Row = Lanes<lanes>;
        float unit_lane[lanes] = {};
        unit_lane[P] = 1.0f;
        const Row unit = Row::load(unit_lane);
        Row acc[P + 1] = {};
        for (std::int64_t k = 0; k < ratings.size; ++k) {
            const float* z = features + static_cast<std::int64_t>(ratings.indices[k]) * lanes;
            const float value = ratings.values[k] - shift;
            prefetch(features + ratings.column_ahead(k, prefetch_small) * lanes);
            Row row = Row::load(z);
            row.add(value, unit);
            const float target = z[P] + value;
            if constexpr (weighted) row = ratings.weights[k] * row;
            (acc[J].add(z[J], row), ...);
            acc[P].add(target, row);
        }
        float sums[(P + 1) * lanes];
        for (int j = 0; j <= P; ++j) acc[j].store(sums + j * lanes);
        double* total = sum.front().data();
        for (int i = 0; i < (P + 1) * lanes; ++i) total[i] += static_cast<double>(sums[i]);
    }
};

/// Of L systems side by side, the factor U of sum + ridge I = U^T U, by Cholesky, y = U^-T rhs, and
/// the solution. Numbers of one place in all systems are together; what comes out for a system
/// doesn't depend on the others.
template <int P, int L>
struct SmallFactor {
    using Numbers = std::array<double, L>;

    Numbers u[P][P];     ///< above the diagonal
    Numbers inverse[P];  ///< 1 / U[j][j]
    Numbers y[P];
    std::array<int, L>
        good;  ///< the leading columns whose pivot isn't lost in rounding; not others

    SmallFactor(const std::array<SmallSums<P>, L>& sums, const Numbers& ridge) {
        // The sums of a chunk carry rounding errors of about 1e-6: a pivot below them says nothing.
        constexpr double least_pivot_share = 1e-5;
        good.fill(P);
        for (int j = 0; j < P; ++j) {
            for (int i = j; i <= P; ++i) {
                Numbers value;
                for (int l = 0; l < L; ++l)
                    value[l] = i < P ? sums[l].sum[j][i] : sums[l].sum[P][j];
                Numbers diagonal;
                if (i == j)
                    for (int l = 0; l < L; ++l) diagonal[l] = value[l] += ridge[l];
                for (int k = 0; k < j; ++k)
                    for (int l = 0; l < L; ++l)
                        value[l] -= u[k][j][l] * (i < P ? u[k][i][l] : y[k][l]);
                if (i == j) {
                    for (int l = 0; l < L; ++l) {
                        const bool lost = !(value[l] > least_pivot_share * diagonal[l]);
                        good[l] = lost ? std::min(good[l], j) : good[l];
                        inverse[j][l] = 1.0 / std::sqrt(lost ? 1.0 : value[l]);
                    }
                } else {
                    Numbers& to = i < P ? u[j][i] : y[j];
                    for (int l = 0; l < L; ++l) to[l] = value[l] * inverse[j][l];
                }
            }
        }
    }

    /// x = U^-1 y, of a system where all columns are good.
    void solve(Numbers (&x)[P]) const {
        for (int j = P - 1; j >= 0; --j) {
            Numbers value = y[j];
            for (int i = j + 1; i < P; ++i)
                for (int l = 0; l < L; ++l) value[l] -= u[j][i][l] * x[i][l];
            for (int l = 0; l < L; ++l) x[j][l] = value[l] * inverse[j][l];
        }
    }
};

/// Calls `call.template operator()<P>()` for the P that `p` is, 1 to max_small.
template <class Call, int P = 1>
void with_small(int p, Call&& call) {
    if constexpr (P <= max_small) {
        if (p == P)
            call.template operator()<P>();
        else
            with_small<Call, P + 1>(p, std::forward<Call>(call));
    }
}

}  // namespace mixedals
