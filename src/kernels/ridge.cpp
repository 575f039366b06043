#include "ridge.hpp"

#include <Eigen/Eigenvalues>
#include <limits>

#include "large.hpp"
#include "small.hpp"
#include "threads.hpp"

namespace mixedals {
namespace {

constexpr std::int64_t run_ratings = 16384;

/// The least-norm solution, in double precision: for the rare row whose system is singular.
double solve_least_norm(const Features& features, Span ratings, double ridge, float* x) {
    const int p = features.p;
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(p, p);
    Eigen::VectorXd rhs = Eigen::VectorXd::Zero(p);
    double square = 0;
    for (std::int64_t k = 0; k < ratings.size; ++k) {
        const float* row = features.row(ratings.indices[k]);
        const auto target = static_cast<double>(features.target(ratings, k, 0.0f));
        const double weight = ratings.weights ? static_cast<double>(ratings.weights[k]) : 1.0;
        const Eigen::VectorXd z = Eigen::Map<const Eigen::VectorXf>(row, p).cast<double>();
        gram.noalias() += weight * z * z.transpose();
        rhs += weight * target * z;
        square += weight * target * target;
    }
    gram.diagonal().array() += ridge;
    const auto no_solution = [&] {
        std::fill_n(x, p, 0.0f);
        return std::numeric_limits<double>::quiet_NaN();
    };
    if (!gram.allFinite() || !rhs.allFinite()) return no_solution();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(gram);
    const Eigen::VectorXd& values = eigen.eigenvalues();
    // The features are single precision: lengths below 1e-6 are rounding, and these are squares.
    const double least = 1e-12 * values.maxCoeff();
    const Eigen::VectorXd inverse = (values.array() > least).select(values.array().inverse(), 0.0);
    const Eigen::VectorXd solution =
        eigen.eigenvectors() * inverse.asDiagonal() * (eigen.eigenvectors().transpose() * rhs);
    if (!(solution.cwiseAbs().maxCoeff() <= std::numeric_limits<float>::max()))
        return no_solution();
    for (int j = 0; j < p; ++j) x[j] = static_cast<float>(solution[j]);
    return square - solution.dot(rhs);
}

template <int P>
double solve_row_small(const Features& features, Span ratings, double ridge, float* out) {
    SmallSums<P> sums;
    sums.add(features, ratings, 0.0f);
    std::array<double, P> x;
    if (!solve_small<P>(sums, ridge, x)) return solve_least_norm(features, ratings, ridge, out);
    double fitted = 0;
    for (int j = 0; j < P; ++j) {
        out[j] = static_cast<float>(x[j]);
        fitted += static_cast<double>(out[j]) * sums.sum[P][j];  // infinite where out[j] is
    }
    return sums.sum[P][P] - fitted;
}

double solve_row_large(Workspace& workspace, const Features& features, Span ratings, float ridge,
                       float* out) {
    bool solved;
    if (ratings.size < features.p) {
        solved = workspace.solve_dual(features, ratings, ridge);
    } else {
        workspace.sum(features, ratings, 0.0f);
        solved = workspace.solve_primal(ridge);
    }
    if (!solved) return solve_least_norm(features, ratings, static_cast<double>(ridge), out);
    std::copy_n(workspace.x(), features.p, out);
    return workspace.loss();
}

}  // namespace

void solve_rows(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
                float* factors, double* loss, double* square, int n_threads) {
    const std::int64_t p = features.p;
    const auto runs = balanced_runs(ratings, rows, run_ratings);
    const auto n_runs = static_cast<std::int64_t>(runs.size()) - 1;
    const auto for_each_row = [&](std::int64_t run, auto solve) {
        for (std::int64_t i = runs[run]; i < runs[run + 1]; ++i) {
            const Span row = span_of(ratings, rows.data[i]);
            float* x = factors + i * p;
            if (row.size == 0) {
                std::fill_n(x, p, 0.0f);
                loss[i] = 0;
            } else {
                loss[i] = solve(row, ridge[i], x);
            }
            square[i] = Eigen::Map<const Eigen::VectorXf>(x, p).cast<double>().squaredNorm();
        }
    };
    if (p <= max_small) {
        with_small(features.p, [&]<int P>() {
            parallel(n_runs, n_threads, [&] {
                return [&](std::int64_t run) {
                    for_each_row(run, [&](Span row, float row_ridge, float* x) {
                        return solve_row_small<P>(features, row, static_cast<double>(row_ridge), x);
                    });
                };
            });
        });
        return;
    }
    parallel(n_runs, n_threads, [&] {
        return [&, workspace = Workspace()](std::int64_t run) mutable {
            for_each_row(run, [&](Span row, float row_ridge, float* x) {
                return solve_row_large(workspace, features, row, row_ridge, x);
            });
        };
    });
}

}  // namespace mixedals
