// One kernel at a fixed input, named by the argument: benchmarks/instructions.py counts what it
// does.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "features.hpp"
#include "group.hpp"
#include "projection.hpp"
#include "ridge.hpp"
#include "score.hpp"

namespace {

using namespace mixedals;

std::vector<float> uniform_floats(std::int64_t n, unsigned seed) {
    std::mt19937 bits(seed);
    std::vector<float> out(static_cast<std::size_t>(n));
    // Not a distribution of the standard library: it may differ between libraries.
    for (float& x : out) x = static_cast<float>(bits() >> 8) / 16777216.0f - 0.5f;
    return out;
}

/// 600 rows of 1 to 300 ratings and one of 5000, on 2000 columns.
struct Data {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> indices;
    std::vector<float> values;
    std::vector<std::int32_t> list;

    Data() {
        std::mt19937 bits(1);
        for (std::int32_t row = 0; row <= 600; ++row) {
            const unsigned skewed = bits() % 300 * (bits() % 300) / 300;
            const unsigned n = row < 600 ? 1 + skewed : 5000;
            for (unsigned k = 0; k < n; ++k)
                indices.push_back(static_cast<std::int32_t>(bits() % columns));
            indptr.push_back(static_cast<std::int64_t>(indices.size()));
            list.push_back(row);
        }
        values = uniform_floats(static_cast<std::int64_t>(indices.size()), 2);
    }

    static constexpr std::int32_t columns = 2000;
    Ratings ratings() const {
        return {rows().n, columns, indptr.data(), indices.data(), values.data(), nullptr};
    }
    Rows rows() const { return {list.data(), static_cast<std::int64_t>(list.size())}; }
};

void half_step(int p) {
    const Data data;
    const std::int64_t n = data.rows().n;
    const auto common = uniform_floats(Data::columns * p, 3);
    const Features features =
        make_features({common.data(), Data::columns, p}, nullptr, nullptr, p, false, 1);
    const std::vector<float> ridge(static_cast<std::size_t>(n), 1.0f);
    std::vector<float> factors(static_cast<std::size_t>(n * p));
    std::vector<double> loss(ridge.size()), square(ridge.size());
    solve_rows(data.ratings(), data.rows(), features, ridge.data(), factors.data(), loss.data(),
               square.data(), 1);
}

template <class Work>
void with_projection(int d, int p, Work work) {
    const Data data;
    const Ratings ratings = data.ratings();
    const auto common = uniform_floats(Data::columns * d, 3);
    const auto factors = uniform_floats(data.rows().n * p, 4);
    const Features features =
        make_features({common.data(), Data::columns, d}, nullptr, nullptr, d, false, 1);
    work(ProjectionProblem{
        ratings, data.rows(), {factors.data(), data.rows().n, p}, features, nullptr, {}});
}

void sums(int d, int p) {
    std::vector<double> packed(static_cast<std::size_t>(d * (d + 1) / 2 * (p * (p + 1) / 2)));
    std::vector<double> rhs(static_cast<std::size_t>(d * p));
    with_projection(d, p, [&](const ProjectionProblem& problem) {
        projection_sums(problem, packed.data(), rhs.data(), 1);
    });
}

void product(int d, int p) {
    const std::vector<double> a(static_cast<std::size_t>(d * p), 0.1);
    std::vector<double> out(a.size());
    with_projection(d, p, [&](const ProjectionProblem& problem) {
        projection_product(problem, a.data(), out.data(), 1);
    });
}

void best_of(int d) {
    constexpr std::int64_t n = 128, k = 10;
    const auto queries = uniform_floats(n * d, 5), items = uniform_floats(Data::columns * d, 6);
    const std::vector<std::int64_t> none(n + 1, 0);
    std::vector<std::int32_t> ids(n * k);
    std::vector<float> scores(n * k);
    top_k({queries.data(), n, d}, {items.data(), Data::columns, d}, k, none.data(), nullptr,
          ids.data(), scores.data(), 1);
}

}  // namespace

int main(int, char** arguments) {
    const std::map<std::string, std::function<void()>> kernels{
        {"half-step 6", [] { half_step(6); }},
        {"half-step 16", [] { half_step(16); }},
        {"half-step 64", [] { half_step(64); }},
        {"projection sums 6 4", [] { sums(6, 4); }},
        {"projection product 64 16", [] { product(64, 16); }},
        {"ten best 64", [] { best_of(64); }},
        {"transpose", [] { transpose(Data().ratings(), 1); }},
    };
    if (arguments[1])
        kernels.at(arguments[1])();
    else
        for (const auto& [name, kernel] : kernels) std::puts(name.c_str());
}
