#include "ridge.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "large.hpp"
#include "small.hpp"
#include "threads.hpp"
#include "together.hpp"

namespace mixedals {
namespace {

constexpr std::int64_t run_ratings_small = 16384, run_ratings_large = 65536;

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

/// The minimum, squared error and penalty at x: square - fitted, where that has digits left, for
/// both are sums in single precision; else from the residuals.
double checked_loss(const Features& features, Span ratings, double ridge, const float* x,
                    double square, double fitted) {
    if (!(square - fitted < 1e-2 * square)) return square - fitted;
    const int p = features.p;
    double loss = 0;
    for (int j = 0; j < p; ++j)
        loss += ridge * static_cast<double>(x[j]) * static_cast<double>(x[j]);
    for (std::int64_t k = 0; k < ratings.size; ++k) {
        const float* z = features.row(ratings.indices[k]);
        // Few features have what is known beside them.
        float error = p <= max_small ? z[p] + ratings.values[k] : features.target(ratings, k, 0.0f);
        for (int j = 0; j < p; ++j) error -= x[j] * z[j];
        const float weight = ratings.weights ? ratings.weights[k] : 1.0f;
        loss += static_cast<double>(weight * error * error);
    }
    return loss;
}

/// Rows of P features: as many systems are solved together as there are doubles in a vector.
template <int P>
class SmallRows {
  public:
    SmallRows(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
              float* factors, double* loss)
        : ratings_(ratings),
          rows_(rows),
          features_(features),
          ridge_(ridge),
          factors_(factors),
          loss_(loss) {}

    /// Solves the rows at [first, last) of the list.
    void operator()(std::int64_t first, std::int64_t last) {
        for (; first < last; first += together)
            solve_some(first, static_cast<int>(std::min<std::int64_t>(together, last - first)));
    }

  private:
    static constexpr int together = 8;

    void solve_some(std::int64_t first, int count) {
        std::array<SmallSums<P>, together> sums;
        std::array<double, together> ridge;
        ridge.fill(1.0);
        for (int l = 0; l < count; ++l) {
            sums[l].add(features_, span_of(ratings_, rows_.data[first + l]), 0.0f);
            ridge[l] = static_cast<double>(ridge_[first + l]);
        }
        const SmallFactor<P, together> factor(sums, ridge);
        std::array<double, together> x[P];
        factor.solve(x);
        for (int l = 0; l < count; ++l) {
            const Span ratings = span_of(ratings_, rows_.data[first + l]);
            float* out = factors_ + (first + l) * P;
            double& loss = loss_[first + l];
            if (factor.good[l] < P) {
                loss = solve_least_norm(features_, ratings, ridge[l], out);
                continue;
            }
            double fitted = 0;
            for (int j = 0; j < P; ++j) {
                out[j] = static_cast<float>(x[j][l]);
                fitted +=
                    static_cast<double>(out[j]) * sums[l].sum[P][j];  // infinite where out[j] is
            }
            loss = checked_loss(features_, ratings, ridge[l], out, sums[l].sum[P][P], fitted);
        }
    }

    const Ratings& ratings_;
    Rows rows_;
    const Features& features_;
    const float* ridge_;
    float* factors_;
    double* loss_;
};

/// Rows of many features: systems of like sizes are solved together.
class LargeRows {
  public:
    LargeRows(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
              float* factors, double* loss)
        : ratings_(ratings),
          rows_(rows),
          features_(features),
          ridge_(ridge),
          factors_(factors),
          loss_(loss) {}

    /// Solves the rows at [first, last) of the list.
    void operator()(std::int64_t first, std::int64_t last) {
        order_.clear();
        for (std::int64_t i = first; i < last; ++i) {
            if (unknowns(i) > Together::largest || ratings(i).size > alone * unknowns(i))
                solve_one(i);
            else
                order_.push_back(i);
        }
        std::ranges::stable_sort(order_, {}, [&](std::int64_t i) { return unknowns(i); });
        for (std::size_t at = 0; at < order_.size(); at += Together::most)
            solve_some(order_.data() + at,
                       static_cast<int>(std::min<std::size_t>(Together::most, order_.size() - at)));
    }

  private:
    /// Of a row with so many ratings an unknown, the sums take most of the time: it needn't wait
    /// for others to fill the lanes.
    static constexpr std::int64_t alone = 64;

    Span ratings(std::int64_t i) const { return span_of(ratings_, rows_.data[i]); }
    bool dual(std::int64_t i) const { return ratings(i).size < features_.p; }
    std::int64_t unknowns(std::int64_t i) const {
        return std::min<std::int64_t>(ratings(i).size, features_.p);
    }

    void sum(std::int64_t i, System& system) {
        if (dual(i))
            sums_.dual(features_, ratings(i), system);
        else
            sums_.primal(features_, ratings(i), 0.0f, system);
    }

    void solve_one(std::int64_t i) {
        sum(i, systems_[0]);
        v_.resize(static_cast<std::size_t>(systems_[0].ld));
        finish(i, systems_[0], solve_alone(systems_[0], ridge_[i], v_.data()), v_.data());
    }

    void solve_some(const std::int64_t* list, int count) {
        std::array<float, Together::most> ridge;
        for (int l = 0; l < count; ++l) {
            sum(list[l], systems_[l]);
            ridge[l] = ridge_[list[l]];
        }
        together_.solve(systems_, ridge, count);
        for (int l = 0; l < count; ++l)
            finish(list[l], systems_[l], together_.solved(l), together_.v(l));
    }

    /// The row's embedding and loss from the unknowns v of its system, unless it wasn't solved.
    void finish(std::int64_t i, const System& system, bool solved, const float* v) {
        float* x = factors_ + i * features_.p;
        const auto ridge = static_cast<double>(ridge_[i]);
        if (!solved) {
            loss_[i] = solve_least_norm(features_, ratings(i), ridge, x);
            return;
        }
        double product = 0;
        for (std::int64_t j = 0; j < system.n; ++j)
            product += static_cast<double>(v[j]) * static_cast<double>(system.rhs[j]);
        if (dual(i)) {
            dual_embedding(features_, ratings(i), v, x);
            loss_[i] = ridge * product;
        } else {
            std::copy_n(v, features_.p, x);
            loss_[i] = checked_loss(features_, ratings(i), ridge, x, system.square, product);
        }
    }

    const Ratings& ratings_;
    Rows rows_;
    const Features& features_;
    const float* ridge_;
    float* factors_;
    double* loss_;
    LargeSums sums_;
    Together together_;
    std::array<System, Together::most> systems_;
    std::vector<std::int64_t> order_;
    std::vector<float> v_;
};

}  // namespace

void solve_rows(const Ratings& ratings, Rows rows, const Features& features, const float* ridge,
                float* factors, double* loss, double* square, int n_threads) {
    const std::int64_t p = features.p;
    const auto runs =
        balanced_runs(ratings, rows, p <= max_small ? run_ratings_small : run_ratings_large);
    const auto n_runs = static_cast<std::int64_t>(runs.size()) - 1;
    const auto solve_with = [&]<class Solve>() {
        parallel(n_runs, n_threads, [&] {
            return [&, solve = Solve(ratings, rows, features, ridge, factors, loss)](
                       std::int64_t run) mutable { solve(runs[run], runs[run + 1]); };
        });
    };
    if (p <= max_small)
        with_small(features.p, [&]<int P>() { solve_with.template operator()<SmallRows<P>>(); });
    else
        solve_with.template operator()<LargeRows>();
    parallel_spans(rows.n, 4096, n_threads, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i)
            square[i] =
                Eigen::Map<const Eigen::VectorXf>(factors + i * p, p).cast<double>().squaredNorm();
    });
}

}  // namespace mixedals
