#include "leave_one_out.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "large.hpp"
#include "small.hpp"
#include "threads.hpp"

namespace mixedals {
namespace {

constexpr std::int64_t run_ratings = 16384;

/// Ratings that are worked on side by side, a lane each; features substituted together.
constexpr int block = 2 * native_lanes;
constexpr int tile = 4;
using Block = Lanes<block>;

/// Below this, 1 - w h is made of rounding.
constexpr float least_rest = 1e-5f;

/// The factor of a row's system and the regression in its terms.
struct Factor {
    std::int64_t good;             ///< its leading columns that rounding hasn't eaten
    std::int64_t ld;               ///< of `upper`
    const float* upper;            ///< U, row after row
    std::vector<float> inverse;    ///< 1 / U[j][j]
    std::vector<float> explained;  ///< U^-T Z^T W t
};

/// z (a feature a row, a rating a lane) becomes U^-T z for its first n rows, a multiple of `tile`.
void substitute(const Factor& factor, std::int64_t n, float* z) {
    const auto tile_at = [&]<int... R>(std::int64_t j, std::integer_sequence<int, R...>) {
        Block sum[tile] = {Block::load(z + (j + R) * block)...};
        for (std::int64_t i = 0; i < j; ++i) {
            const Block v = Block::load(z + i * block);
            const float* u = factor.upper + i * factor.ld + j;
            (sum[R].add(-u[R], v), ...);
        }
        for (int r = 0; r < tile; ++r) {
            sum[r] = factor.inverse[j + r] * sum[r];
            sum[r].store(z + (j + r) * block);
            const float* u = factor.upper + (j + r) * factor.ld + j;
            for (int below = r + 1; below < tile; ++below) sum[below].add(-u[below], sum[r]);
        }
    };
    for (std::int64_t j = 0; j < n; j += tile) tile_at(j, std::make_integer_sequence<int, tile>{});
}

class LeaveOneOut {
  public:
    LeaveOneOut(const Features& features, const std::int32_t* sizes, std::int64_t n_sizes)
        : features_(features),
          sizes_(sizes, sizes + n_sizes),
          width_((features.p + tile - 1) / tile * tile),
          z_(static_cast<std::size_t>(width_ * block), 0.0f),
          sum_(static_cast<std::size_t>(n_sizes * block)),
          least_(static_cast<std::size_t>(n_sizes * block)),
          upper_(static_cast<std::size_t>(features.p <= max_small ? width_ * width_ : 0)) {
        factor_.inverse.assign(static_cast<std::size_t>(width_), 0.0f);
        factor_.explained.assign(static_cast<std::size_t>(width_), 0.0f);
    }

    /// One row; P is features.p where that is small, else 0.
    template <int P>
    void operator()(Span ratings, float ridge, double* errors) {
        if constexpr (P > 0)
            factorise_small<P>(ratings, static_cast<double>(ridge));
        else
            factorise_large(ratings, ridge);
        std::fill(errors, errors + sizes_.size(), 0.0);
        std::fill(least_.begin(), least_.end(), 1.0f);
        for (std::int64_t first = 0; first < ratings.size; first += chunk_ratings) {
            const std::int64_t end = std::min(first + chunk_ratings, ratings.size);
            std::fill(sum_.begin(), sum_.end(), 0.0f);
            for (std::int64_t k = first; k < end; k += block)
                add(ratings.part(k, std::min<std::int64_t>(block, end - k)));
            for (std::size_t c = 0; c < sizes_.size(); ++c)
                for (int l = 0; l < block; ++l)
                    errors[c] += static_cast<double>(sum_[c * block + l]);
        }
        for (std::size_t c = 0; c < sizes_.size(); ++c)
            if (sizes_[c] > factor_.good ||
                !(*std::min_element(&least_[c * block], &least_[c * block] + block) > least_rest) ||
                !(errors[c] <= std::numeric_limits<float>::max()))
                errors[c] = std::numeric_limits<double>::infinity();
    }

  private:
    template <int P>
    void factorise_small(Span ratings, double ridge) {
        std::array<SmallSums<P>, 1> sums;
        sums[0].add(features_, ratings, 0.0f);
        const SmallFactor<P, 1> factor(sums, {ridge});
        for (int j = 0; j < P; ++j) {
            for (int i = j + 1; i < P; ++i)
                upper_[j * width_ + i] = static_cast<float>(factor.u[j][i][0]);
            factor_.inverse[j] = static_cast<float>(factor.inverse[j][0]);
            factor_.explained[j] = static_cast<float>(factor.y[j][0]);
        }
        factor_.good = factor.good[0];
        factor_.ld = width_;
        factor_.upper = upper_.data();
    }

    void factorise_large(Span ratings, float ridge) {
        sums_.primal(features_, ratings, 0.0f, system_);
        const std::int64_t p = features_.p, ld = system_.ld;
        factor_.good = factorise(system_, ridge);
        factor_.ld = ld;
        factor_.upper = system_.matrix.data();
        std::vector<float>& y = factor_.explained;
        std::copy_n(system_.rhs.begin(), p, y.begin());
        for (std::int64_t j = 0; j < factor_.good; ++j) {
            const float* u = factor_.upper + j * ld;
            factor_.inverse[j] = 1.0f / u[j];
            y[j] *= factor_.inverse[j];
            for (std::int64_t i = j + 1; i < p; ++i) y[i] -= y[j] * u[i];
        }
    }

    /// Adds at most `block` ratings to the sums of every size.
    void add(Span ratings) {
        float target[block] = {}, weight[block] = {}, h[block] = {}, fitted[block] = {};
        const std::int64_t p = features_.p;
        for (std::int64_t k = 0; k < ratings.size; ++k) {
            const float* row = features_.row(ratings.indices[k]);
            prefetch(features_.row(ratings.column_ahead(k, prefetch_small)));
            for (std::int64_t j = 0; j < p; ++j) z_[j * block + k] = row[j];
            // Few features have what is known beside them.
            target[k] =
                p <= max_small ? row[p] + ratings.values[k] : features_.target(ratings, k, 0.0f);
            weight[k] = ratings.weights ? ratings.weights[k] : 1.0f;
        }
        for (std::int64_t j = 0; j < p; ++j)
            std::fill(&z_[j * block + ratings.size], &z_[j * block] + block, 0.0f);
        substitute(factor_, width_, z_.data());
        std::int64_t j = 0;
        for (std::size_t c = 0; c < sizes_.size(); ++c) {
            for (; j < sizes_[c]; ++j) {
                const float* v = &z_[j * block];
                const float explained = factor_.explained[j];
                for (int l = 0; l < block; ++l) {
                    h[l] += v[l] * v[l];
                    fitted[l] += explained * v[l];
                }
            }
            float *sum = &sum_[c * block], *least = &least_[c * block];
            for (int l = 0; l < block; ++l) {
                const float rest = 1.0f - weight[l] * h[l];
                const float error = (target[l] - fitted[l]) / rest;
                sum[l] += weight[l] * error * error;
                least[l] = rest < least[l] ? rest : least[l];
            }
        }
    }

    const Features& features_;
    std::vector<std::int32_t> sizes_;
    std::int64_t width_;
    std::vector<float> z_, sum_, least_, upper_;
    Factor factor_{};
    LargeSums sums_;
    System system_;
};

}  // namespace

void leave_one_out(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
                   const std::int32_t* sizes, std::int64_t n_sizes, double* errors, int n_threads) {
    const auto runs = balanced_runs(ratings, rows, run_ratings);
    const auto for_all = [&]<int P>() {
        parallel(static_cast<std::int64_t>(runs.size()) - 1, n_threads, [&] {
            return
                [&, row_errors = LeaveOneOut(features, sizes, n_sizes)](std::int64_t run) mutable {
                    for (std::int64_t i = runs[run]; i < runs[run + 1]; ++i)
                        row_errors.template operator()<P>(span_of(ratings, rows.data[i]), ridge[i],
                                                          errors + i * n_sizes);
                };
        });
    };
    if (features.p > max_small)
        for_all.template operator()<0>();
    else
        with_small(features.p, for_all);
}

}  // namespace mixedals
