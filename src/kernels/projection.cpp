#include "projection.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "large.hpp"
#include "random.hpp"
#include "small.hpp"
#include "threads.hpp"
#include "tiles.hpp"

namespace mixedals {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowMajorDouble = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Partial sums are taken over so many parts of a tier, as few as memory asks for and whatever the
/// number of threads, and added in their order: the result has the same bits on any machine with
/// the same instruction set. `numbers` is how many a part's sum has.
std::int64_t parts_for(std::int64_t numbers) {
    constexpr std::int64_t memory = (std::int64_t{256} << 20) / sizeof(double);
    return std::clamp<std::int64_t>(memory / numbers, 8, 64);
}

/// Rows whose Gram matrices, of so many numbers, go into one matrix product.
std::int64_t block_rows_for(std::int64_t n_gram) {
    return std::clamp<std::int64_t>((std::int64_t{1} << 22) / n_gram, 1, 128);
}

std::int64_t packed_size(std::int64_t n) { return n * (n + 1) / 2; }

/// The sampled ratings of a row, or all of them.
class Sampled {
  public:
    Span of(const ProjectionProblem& problem, std::int64_t row) {
        const Span all = span_of(problem.ratings, row);
        if (!problem.sample) return all;
        const Sample& sample = *problem.sample;
        indices_.clear(), values_.clear(), weights_.clear();
        const std::uint64_t of_row = mix(sample.key ^ sample.row_keys[row]);
        for (std::int64_t k = 0; k < all.size; ++k) {
            if (mix(of_row ^ sample.column_keys[all.indices[k]]) >= sample.below) continue;
            indices_.push_back(all.indices[k]);
            values_.push_back(all.values[k]);
            if (all.weights) weights_.push_back(all.weights[k]);
        }
        return {indices_.data(), values_.data(), all.weights ? weights_.data() : nullptr,
                static_cast<std::int64_t>(indices_.size()),
                static_cast<std::int64_t>(indices_.size())};
    }

  private:
    std::vector<std::int32_t> indices_;
    std::vector<float> values_, weights_;
};

float known_of(const ProjectionProblem& problem, std::int64_t row) {
    return problem.known_rows ? problem.known_rows[row] : 0.0f;
}

/// Calls `add(part, first, last)`, with one `add` a thread, for every part of the tier's rows;
/// parts hold about equal numbers of ratings. Their number, at most one more than asked for.
template <class MakeAdd>
std::int64_t for_each_part(const ProjectionProblem& problem, std::int64_t parts, int n_threads,
                           MakeAdd make_add) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < problem.rows.n; ++i)
        total += problem.ratings.count(problem.rows.data[i]) + row_cost;
    const auto cuts = balanced_runs(problem.ratings, problem.rows, total / parts + 1);
    const auto n = static_cast<std::int64_t>(cuts.size()) - 1;
    parallel(n, n_threads, [&] {
        return [&, add = make_add()](std::int64_t part) mutable {
            add(part, cuts[part], cuts[part + 1]);
        };
    });
    return n;
}

/// G (upper triangle, packed) and sum w t y of one row, in single precision.
template <int D>
struct SmallGram {
    void operator()(const Features& features, Span ratings, float shift, float* gram, double* rhs) {
        SmallSums<D> sums;
        sums.add(features, ratings, shift);
        for (int j = 0, at = 0; j < D; ++j)
            for (int i = j; i < D; ++i) gram[at++] = static_cast<float>(sums.sum[j][i]);
        std::copy_n(sums.sum[D].data(), D, rhs);
    }
};

struct LargeGram {
    LargeSums sums;
    System system;

    void operator()(const Features& features, Span ratings, float shift, float* gram, double* rhs) {
        sums.primal(features, ratings, shift, system);
        const std::int64_t d = features.p;
        for (std::int64_t j = 0; j < d; ++j) {
            const float* row = system.matrix.data() + j * system.ld;
            gram = std::copy(row + j, row + d, gram);
        }
        std::copy_n(system.rhs.begin(), d, rhs);
    }
};

template <class Gram>
void sum_with(const ProjectionProblem& problem, double* packed, double* rhs, int n_threads) {
    const std::int64_t d = problem.features.p, p = problem.factors.columns;
    const std::int64_t n_gram = packed_size(d), n_outer = packed_size(p);
    const std::int64_t parts = parts_for(n_gram * n_outer), block_rows = block_rows_for(n_gram);
    std::vector<RowMajorDouble> packed_part(static_cast<std::size_t>(parts + 1));
    std::vector<RowMajorDouble> rhs_part(static_cast<std::size_t>(parts + 1));
    const auto make_add = [&] {
        return [&, gram_of = Gram(), sampled = Sampled(), grams = RowMajor(block_rows, n_gram),
                outers = RowMajor(block_rows, n_outer), product = RowMajor(n_gram, n_outer),
                row_rhs = Eigen::VectorXd(d)](std::int64_t part, std::int64_t first,
                                              std::int64_t last) mutable {
            auto& sum = packed_part[static_cast<std::size_t>(part)];
            auto& right = rhs_part[static_cast<std::size_t>(part)];
            sum = RowMajorDouble::Zero(n_gram, n_outer);
            right = RowMajorDouble::Zero(d, p);
            std::int64_t filled = 0;
            const auto flush = [&] {
                product.noalias() = grams.topRows(filled).transpose() * outers.topRows(filled);
                sum += product.template cast<double>();
                filled = 0;
            };
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t row = problem.rows.data[i];
                const Span ratings = sampled.of(problem, row);
                if (ratings.size == 0) continue;
                const float* x = problem.factors.row(i);
                gram_of(problem.features, ratings, known_of(problem, row), grams.row(filled).data(),
                        row_rhs.data());
                float* outer = outers.row(filled).data();
                for (std::int64_t j = 0; j < p; ++j)
                    for (std::int64_t k = j; k < p; ++k) *outer++ = x[j] * x[k];
                right.noalias() +=
                    row_rhs * Eigen::Map<const Eigen::RowVectorXf>(x, p).template cast<double>();
                if (++filled == block_rows) flush();
            }
            if (filled) flush();
        };
    };
    const std::int64_t n = for_each_part(problem, parts, n_threads, make_add);
    Eigen::Map<RowMajorDouble> packed_out(packed, n_gram, n_outer), rhs_out(rhs, d, p);
    packed_out.setZero();
    rhs_out.setZero();
    for (std::int64_t part = 0; part < n; ++part) {
        packed_out += packed_part[static_cast<std::size_t>(part)];
        rhs_out += rhs_part[static_cast<std::size_t>(part)];
    }
}

/// out (d x p) = sum over rows of (sum over ratings of w scale y) x^T. `scale_of(x, row)` gives,
/// for a row of the tier, the function that puts the scales of up to native_lanes ratings, whose
/// features it is given too (padded(d) floats each), into an array.
template <class ScaleOf>
void sum_outers(const ProjectionProblem& problem, double* out, int n_threads, ScaleOf scale_of) {
    const Features& features = problem.features;
    const std::int64_t d = features.p, p = problem.factors.columns;
    const std::int64_t parts = parts_for(d * p), ld = padded(d);
    std::vector<RowMajorDouble> sums(static_cast<std::size_t>(parts + 1));
    const auto make_add = [&] {
        return [&, chunk = Eigen::VectorXf(ld), row_sum = Eigen::VectorXd(d),
                y = std::vector<float>(static_cast<std::size_t>(native_lanes * ld), 0.0f)](
                   std::int64_t part, std::int64_t first, std::int64_t last) mutable {
            auto& sum = sums[static_cast<std::size_t>(part)];
            sum = RowMajorDouble::Zero(d, p);
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t row = problem.rows.data[i];
                const Span ratings = span_of(problem.ratings, row);
                const Eigen::Map<const Eigen::VectorXf> x(problem.factors.row(i), p);
                const auto scales = scale_of(x, row);
                row_sum.setZero();
                for (std::int64_t start = 0; start < ratings.size; start += chunk_ratings) {
                    const std::int64_t end = std::min(start + chunk_ratings, ratings.size);
                    chunk.setZero();
                    for (std::int64_t k = start; k < end; k += native_lanes) {
                        const Span some =
                            ratings.part(k, std::min<std::int64_t>(native_lanes, end - k));
                        for (std::int64_t l = 0; l < some.size; ++l) {
                            features.prefetch_row(some.column_ahead(l, native_lanes));
                            std::copy_n(features.row(some.indices[l]), d, y.data() + l * ld);
                        }
                        float scale[native_lanes];
                        scales(some, y.data(), scale);
                        if (some.weights)
                            for (std::int64_t l = 0; l < some.size; ++l)
                                scale[l] *= some.weights[l];
                        add_rows(
                            some.size, ld, [&](std::int64_t l) { return scale[l]; },
                            [&](std::int64_t l) { return y.data() + l * ld; }, chunk.data());
                    }
                    row_sum += chunk.head(d).template cast<double>();
                }
                sum.noalias() += row_sum * x.transpose().template cast<double>();
            }
        };
    };
    const std::int64_t n = for_each_part(problem, parts, n_threads, make_add);
    Eigen::Map<RowMajorDouble> total(out, d, p);
    total.setZero();
    for (std::int64_t part = 0; part < n; ++part) total += sums[static_cast<std::size_t>(part)];
}

}  // namespace

void projection_sums(const ProjectionProblem& problem, double* packed, double* rhs, int n_threads) {
    if (problem.features.p <= max_small) {
        with_small(problem.features.p,
                   [&]<int D>() { sum_with<SmallGram<D>>(problem, packed, rhs, n_threads); });
    } else {
        sum_with<LargeGram>(problem, packed, rhs, n_threads);
    }
}

bool solve_projection(const double* packed, const double* rhs, int d, int p, double beta,
                      float* a) {
    const auto at = [](std::int64_t n, std::int64_t j, std::int64_t i) {
        if (j > i) std::swap(j, i);
        return j * n - j * (j - 1) / 2 + (i - j);
    };
    const std::int64_t n = static_cast<std::int64_t>(d) * p, n_outer = packed_size(p);
    // (Q^T Q)[(i, j), (k, l)] = sum_u G_u[i, k] (x x^T)[j, l], flattened row after row.
    Eigen::MatrixXd system(n, n);
    for (std::int64_t i = 0; i < d; ++i)
        for (std::int64_t k = 0; k < d; ++k)
            for (std::int64_t j = 0; j < p; ++j)
                for (std::int64_t l = 0; l < p; ++l)
                    system(i * p + j, k * p + l) = packed[at(d, i, k) * n_outer + at(p, j, l)];
    system.diagonal().array() += beta;
    const Eigen::VectorXd diagonal = system.diagonal();
    const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(system);
    if (factor.info() != Eigen::Success) return false;
    // The sums carry rounding errors of single precision: a pivot below them says nothing.
    constexpr double least_pivot = 1e-7;
    if ((factor.matrixLLT().diagonal().array().square() <= least_pivot * diagonal.array()).any())
        return false;
    const Eigen::VectorXd solution = factor.solve(Eigen::Map<const Eigen::VectorXd>(rhs, n));
    Eigen::Map<Eigen::VectorXf>(a, n) = solution.cast<float>();
    return solution.allFinite();
}

void projection_product(const ProjectionProblem& problem, const double* a, double* out,
                        int n_threads) {
    const std::int64_t d = problem.features.p, p = problem.factors.columns, ld = padded(d);
    RowMajor matrix = RowMajor::Zero(ld, p);
    matrix.topRows(d) = Eigen::Map<const RowMajorDouble>(a, d, p).cast<float>();
    sum_outers(problem, out, n_threads, [&](const auto& x, std::int64_t) {
        return [ld, direction = Eigen::VectorXf(matrix * x)](const Span&, const float* y,
                                                             float* scale) {
            store(scale, dots(ld, direction.data(), [&](std::int64_t l) { return y + l * ld; }));
        };
    });
}

void projection_rhs(const ProjectionProblem& problem, double* out, int n_threads) {
    const Features& features = problem.features;
    sum_outers(problem, out, n_threads, [&](const auto&, std::int64_t row) {
        return [&features, shift = known_of(problem, row)](const Span& some, const float*,
                                                           float* scale) {
            for (std::int64_t l = 0; l < some.size; ++l) scale[l] = features.target(some, l, shift);
        };
    });
}

}  // namespace mixedals
