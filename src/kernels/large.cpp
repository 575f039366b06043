#include "large.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "small.hpp"
#include "tiles.hpp"

namespace mixedals {
namespace {

constexpr int W = native_lanes;

// Rows gathered before they are multiplied: what the first-level cache holds beside the tile.
constexpr std::int64_t gathered_floats = 4096;

float root_weight(Span ratings, std::int64_t k) {
    return ratings.weights ? std::sqrt(ratings.weights[k]) : 1.0f;
}

template <class T>
void at_least(std::vector<T>& memory, std::int64_t n) {
    if (static_cast<std::int64_t>(memory.size()) < n) memory.resize(static_cast<std::size_t>(n));
}

/// b becomes (U^T U)^-1 b. What stands beside the first n columns of U and b is zero.
void substitute(const System& system, float* b) {
    const std::int64_t n = system.n, ld = system.ld;
    const float* u = system.matrix.data();
    for (std::int64_t k = 0; k < n; ++k) {
        const float value = b[k] / u[k * ld + k];
        const std::int64_t from = k / W * W;
        add_scaled(-value, u + k * ld + from, b + from, ld - from);
        b[k] = value;
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
        const std::int64_t from = k / W * W;
        const float value = std::exchange(b[k], 0.0f);
        b[k] = (value - dot(u + k * ld + from, b + from, ld - from)) / u[k * ld + k];
    }
}

}  // namespace

void System::resize(std::int64_t unknowns) {
    n = unknowns;
    ld = padded(n);
    at_least(matrix, ld * ld);
    at_least(rhs, ld);
    std::fill_n(matrix.begin(), ld * ld, 0.0f);
    std::fill_n(rhs.begin(), ld, 0.0f);
    square = 0;
}

void LargeSums::primal(const Features& features, Span ratings, float shift, System& out) {
    out.resize(features.p);
    const std::int64_t ld = out.ld;
    const std::int64_t batch = std::max<std::int64_t>(gathered_floats / ld, 32);
    at_least(rows_, batch * ld);
    at_least(targets_, batch);
    const bool in_double = ratings.size > chunk_ratings;
    if (in_double) total_.assign(static_cast<std::size_t>(ld * (ld + 1)), 0.0);
    const auto flush = [&] {
        for (std::int64_t i = 0; i < ld * ld; ++i) total_[i] += static_cast<double>(out.matrix[i]);
        for (std::int64_t i = 0; i < ld; ++i)
            total_[ld * ld + i] += static_cast<double>(out.rhs[i]);
        std::fill_n(out.matrix.begin(), ld * ld, 0.0f);
        std::fill_n(out.rhs.begin(), ld, 0.0f);
    };
    std::int64_t since_flush = 0;
    for (std::int64_t first = 0; first < ratings.size; first += batch) {
        const std::int64_t n = std::min(batch, ratings.size - first);
        for (std::int64_t k = 0; k < n; ++k) {
            features.prefetch_row(ratings.column_ahead(first + k, prefetch_large));
            const float* z = features.row(ratings.indices[first + k]);
            const float root = root_weight(ratings, first + k);
            const float target = root * features.target(ratings, first + k, shift);
            float* row = rows_.data() + k * ld;
            for (std::int64_t i = 0; i < ld; i += W) store(row + i, root * load(z + i));
            targets_[k] = target;
            out.square += static_cast<double>(target) * static_cast<double>(target);
        }
        add_rows(
            n, ld, [&](std::int64_t k) { return targets_[k]; },
            [&](std::int64_t k) { return rows_.data() + k * ld; }, out.rhs.data());
        add_product<1>(rows_.data(), n, ld, 0, ld, out.matrix.data());
        since_flush += n;
        if (in_double && (since_flush >= chunk_ratings || first + n == ratings.size)) {
            flush();
            since_flush = 0;
        }
    }
    if (in_double) {
        for (std::int64_t i = 0; i < ld * ld; ++i) out.matrix[i] = static_cast<float>(total_[i]);
        for (std::int64_t i = 0; i < ld; ++i) out.rhs[i] = static_cast<float>(total_[ld * ld + i]);
    }
}

void LargeSums::dual(const Features& features, Span ratings, System& out) {
    out.resize(ratings.size);
    const std::int64_t ld = out.ld;
    at_least(rows_, features.stride * ld);  // a feature a row
    for (std::int64_t first = 0; first < ld; first += W) {
        const std::int64_t here = std::min<std::int64_t>(W, ratings.size - first);
        float root[W] = {};
        const float* z[W];
        for (std::int64_t k = 0; k < here; ++k) {
            features.prefetch_row(ratings.column_ahead(first + k, W));
            z[k] = features.row(ratings.indices[first + k]);
            root[k] = root_weight(ratings, first + k);
            const float target = root[k] * features.target(ratings, first + k, 0.0f);
            out.rhs[first + k] = target;
            out.square += static_cast<double>(target) * static_cast<double>(target);
        }
        for (std::int64_t i = 0; i < features.stride; i += W) {
            V block[W] = {};
            for (std::int64_t k = 0; k < here; ++k) block[k] = root[k] * load(z[k] + i);
            transpose(block);
            for (int c = 0; c < W; ++c) store(rows_.data() + (i + c) * ld + first, block[c]);
        }
    }
    add_product<1>(rows_.data(), features.p, ld, 0, ld, out.matrix.data());
}

void dual_embedding(const Features& features, Span ratings, const float* v, float* x) {
    std::vector<float> sum(static_cast<std::size_t>(features.stride), 0.0f);
    add_rows(
        ratings.size, features.stride,
        [&](std::int64_t k) { return root_weight(ratings, k) * v[k]; },
        [&](std::int64_t k) { return features.row(ratings.indices[k]); }, sum.data());
    std::copy_n(sum.begin(), features.p, x);
}

/// In panels of W rows.
std::int64_t factorise(System& system, float ridge) {
    const std::int64_t n = system.n, ld = system.ld;
    float* g = system.matrix.data();
    for (std::int64_t j = 0; j < n; ++j) g[j * ld + j] += ridge;
    for (std::int64_t first = 0; first < n; first += W) {
        std::array<float, W> diagonal;
        for (int j = 0; j < W; ++j) diagonal[j] = g[(first + j) * ld + first + j];
        add_product<-1>(g, first, ld, first, first + W, g);
        const std::int64_t last = std::min(first + W, n);
        for (std::int64_t j = first; j < last; ++j) {
            float* row = g + j * ld;
            if (!(row[j] > least_pivot * diagonal[j - first])) return j;
            const float inverse = 1.0f / std::sqrt(row[j]);
            for (std::int64_t i = first; i < ld; i += W) store(row + i, inverse * load(row + i));
            std::fill(row + first, row + j, 0.0f);  // substitute() reads whole vectors
            for (std::int64_t below = j + 1; below < last; ++below)
                add_scaled(-row[below], row + first, g + below * ld + first, ld - first);
        }
    }
    return n;
}

bool solve_alone(System& system, float ridge, float* v) {
    if (factorise(system, ridge) < system.n) return false;
    std::copy_n(system.rhs.begin(), system.ld, v);
    substitute(system, v);
    return true;
}

}  // namespace mixedals
