#include "large.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lanes.hpp"
#include "small.hpp"

namespace mixedals {
namespace {

constexpr int W = native_lanes;
using V = Vector<W>;

// A tile is tile_rows x (1 to tile_vectors) vectors of accumulators, as many as the registers hold.
constexpr int tile_rows = W == 16 ? 8 : 4;
constexpr int tile_vectors = W == 4 ? 2 : 3;

// Rows gathered before they are multiplied: what the first-level cache holds beside the tile.
constexpr std::int64_t gathered_floats = 4096;

V load(const float* from) {
    V out;
    std::memcpy(&out, from, sizeof(out));
    return out;
}

void store(float* to, V v) { std::memcpy(to, &v, sizeof(v)); }

/// g[j][i] += sign * sum_k a[k][j] a[k][i] for `tile_rows` rows j and C vectors of columns i.
template <int sign, int C>
void update_tile(const float* a, std::int64_t n, std::int64_t ld, std::int64_t j, std::int64_t i,
                 float* g) {
    constexpr auto every = std::make_index_sequence<tile_rows * C>{};
    V acc[tile_rows * C];
    [&]<std::size_t... T>(std::index_sequence<T...>) {
        ((acc[T] = load(g + (j + T / C) * ld + i + (T % C) * W)), ...);
    }(every);
    for (std::int64_t k = 0; k < n; ++k) {
        const float* row = a + k * ld;
        V column[C];
        for (int c = 0; c < C; ++c) column[c] = load(row + i + c * W);
        [&]<std::size_t... T>(std::index_sequence<T...>) {
            ((acc[T] += (sign * row[j + T / C]) * column[T % C]), ...);
        }(every);
    }
    [&]<std::size_t... T>(std::index_sequence<T...>) {
        (store(g + (j + T / C) * ld + i + (T % C) * W, acc[T]), ...);
    }(every);
}

/// Upper triangle, in blocks of W, of g += sign * a^T a, rows [first, last) of g, multiples of W.
template <int sign>
void update(const float* a, std::int64_t n, std::int64_t ld, std::int64_t first, std::int64_t last,
            float* g) {
    for (std::int64_t j = first; j < last; j += tile_rows) {
        std::int64_t i = j / W * W;
        for (; i + tile_vectors * W <= ld; i += tile_vectors * W)
            update_tile<sign, tile_vectors>(a, n, ld, j, i, g);
        for (; i < ld; i += W) update_tile<sign, 1>(a, n, ld, j, i, g);
    }
}

/// y += a * x over n floats, a multiple of W.
void add_scaled(float a, const float* x, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += W) {
        V sum = load(y + i);
        sum += a * load(x + i);
        store(y + i, sum);
    }
}

float dot(const float* x, const float* y, std::int64_t n) {
    V sum = {};
    for (std::int64_t i = 0; i < n; i += W) {
        const V a = load(x + i), b = load(y + i);
        sum += a * b;
    }
    float out = 0;
    for (int l = 0; l < W; ++l) out += sum[l];
    return out;
}

void prefetch_row(const Features& features, std::int64_t column) {
    const float* row = features.row(column);
    for (std::int64_t i = 0; i < features.stride; i += 16) prefetch(row + i);
}

template <class T>
void at_least(std::vector<T>& memory, std::int64_t n) {
    if (static_cast<std::int64_t>(memory.size()) < n) memory.resize(static_cast<std::size_t>(n));
}

}  // namespace

std::int64_t padded(std::int64_t n) { return (n + W - 1) / W * W; }

void Workspace::sum(const Features& features, Span ratings, float shift) {
    p_ = features.p;
    const std::int64_t ld = features.stride;
    const std::int64_t batch = std::max<std::int64_t>(gathered_floats / ld, 32);
    at_least(gram_, ld * ld);
    at_least(rows_, batch * ld);
    at_least(rhs_, ld);
    at_least(x_, ld);
    std::fill_n(gram_.begin(), ld * ld, 0.0f);
    std::fill_n(rhs_.begin(), ld, 0.0f);
    square_ = 0;
    const bool in_double = ratings.size > chunk_ratings;
    if (in_double) total_.assign(static_cast<std::size_t>(ld * (ld + 1)), 0.0);
    const auto flush = [&] {
        for (std::int64_t i = 0; i < ld * ld; ++i) total_[i] += static_cast<double>(gram_[i]);
        for (std::int64_t i = 0; i < ld; ++i) total_[ld * ld + i] += static_cast<double>(rhs_[i]);
        std::fill_n(gram_.begin(), ld * ld, 0.0f);
        std::fill_n(rhs_.begin(), ld, 0.0f);
    };
    std::int64_t since_flush = 0;
    for (std::int64_t first = 0; first < ratings.size; first += batch) {
        const std::int64_t n = std::min(batch, ratings.size - first);
        for (std::int64_t k = 0; k < n; ++k) {
            prefetch_row(features, ratings.column_ahead(first + k, prefetch_large));
            const float* z = features.row(ratings.indices[first + k]);
            const float root = ratings.weights ? std::sqrt(ratings.weights[first + k]) : 1.0f;
            const float target = root * features.target(ratings, first + k, shift);
            float* row = rows_.data() + k * ld;
            for (std::int64_t i = 0; i < ld; i += W) {
                const V v = root * load(z + i);
                store(row + i, v);
                V r = load(rhs_.data() + i);
                r += target * v;
                store(rhs_.data() + i, r);
            }
            square_ += static_cast<double>(target) * static_cast<double>(target);
        }
        update<1>(rows_.data(), n, ld, 0, ld, gram_.data());
        since_flush += n;
        if (in_double && (since_flush >= chunk_ratings || first + n == ratings.size)) {
            flush();
            since_flush = 0;
        }
    }
    if (in_double) {
        for (std::int64_t i = 0; i < ld * ld; ++i) gram_[i] = static_cast<float>(total_[i]);
        for (std::int64_t i = 0; i < ld; ++i) rhs_[i] = static_cast<float>(total_[ld * ld + i]);
    }
}

/// In panels of W rows.
std::int64_t Workspace::factorise(std::int64_t n, std::int64_t ld, float ridge) {
    constexpr float least_pivot = 1e-5f;  // below it, rounding has eaten the pivot
    float* g = gram_.data();
    for (std::int64_t j = 0; j < n; ++j) g[j * ld + j] += ridge;
    for (std::int64_t first = 0; first < n; first += W) {
        std::array<float, W> diagonal;
        for (int j = 0; j < W; ++j) diagonal[j] = g[(first + j) * ld + first + j];
        update<-1>(g, first, ld, first, first + W, g);
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

/// b becomes (U^T U)^-1 b. What stands beside the first n columns of U and b is zero.
void Workspace::substitute(std::int64_t n, std::int64_t ld, float* b) const {
    const float* u = gram_.data();
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

bool Workspace::solve_primal(float ridge) {
    const std::int64_t ld = padded(p_);
    if (factorise(p_, ld, ridge) < p_) return false;
    std::copy_n(rhs_.begin(), ld, x_.begin());
    substitute(p_, ld, x_.data());
    double fitted = 0;
    for (std::int64_t j = 0; j < p_; ++j)
        fitted += static_cast<double>(x_[j]) * static_cast<double>(rhs_[j]);
    loss_ = square_ - fitted;
    return true;
}

bool Workspace::solve_dual(const Features& features, Span ratings, float ridge) {
    p_ = features.p;
    const std::int64_t n = ratings.size, ld = padded(n), width = features.stride;
    at_least(gram_, ld * ld);
    at_least(rows_, width * ld);  // transposed: a feature a row
    at_least(rhs_, ld);
    at_least(x_, std::max(width, ld));
    std::fill_n(gram_.begin(), ld * ld, 0.0f);
    std::fill_n(rhs_.begin(), ld, 0.0f);
    for (std::int64_t k = 0; k < ld; ++k) {
        if (k >= n) {
            for (std::int64_t i = 0; i < p_; ++i) rows_[i * ld + k] = 0;
            continue;
        }
        prefetch_row(features, ratings.column_ahead(k, prefetch_large));
        const float* z = features.row(ratings.indices[k]);
        const float root = ratings.weights ? std::sqrt(ratings.weights[k]) : 1.0f;
        for (std::int64_t i = 0; i < p_; ++i) rows_[i * ld + k] = root * z[i];
        rhs_[k] = root * features.target(ratings, k, 0.0f);
    }
    update<1>(rows_.data(), p_, ld, 0, ld, gram_.data());
    if (factorise(n, ld, ridge) < n) return false;
    std::vector<float>& dual = x_;
    std::copy_n(rhs_.begin(), ld, dual.begin());
    substitute(n, ld, dual.data());
    // (squared error) + (penalty) = ridge * dual . target
    loss_ = 0;
    for (std::int64_t k = 0; k < n; ++k)
        loss_ += static_cast<double>(ridge) * static_cast<double>(dual[k]) *
                 static_cast<double>(rhs_[k]);
    std::copy_n(dual.begin(), ld, rhs_.begin());
    for (std::int64_t i = 0; i < p_; ++i) x_[i] = dot(rows_.data() + i * ld, rhs_.data(), ld);
    return true;
}

}  // namespace mixedals
