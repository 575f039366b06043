// Register tiles: products of tall matrices with themselves, and what else is done by whole
// vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "lanes.hpp"

namespace mixedals {

using V = Vector<native_lanes>;

/// Rounded up to whole native vectors.
inline std::int64_t padded(std::int64_t n) {
    return (n + native_lanes - 1) / native_lanes * native_lanes;
}

inline V load(const float* from) {
    V out;
    std::memcpy(&out, from, sizeof(out));
    return out;
}

inline void store(float* to, V v) { std::memcpy(to, &v, sizeof(v)); }

/// y += a * x over n floats, a multiple of native_lanes.
inline void add_scaled(float a, const float* x, float* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += native_lanes) {
        V sum = load(y + i);
        sum += a * load(x + i);
        store(y + i, sum);
    }
}

inline float dot(const float* x, const float* y, std::int64_t n) {
    V sum = {};
    for (std::int64_t i = 0; i < n; i += native_lanes) {
        const V a = load(x + i), b = load(y + i);
        sum += a * b;
    }
    float out = 0;
    for (int l = 0; l < native_lanes; ++l) out += sum[l];
    return out;
}

/// y += sum over k < n of scale(k) * row(k), `floats` numbers, a multiple of
/// native_lanes.
template <class Scale, class Row>
void add_rows(std::int64_t n, std::int64_t floats, Scale scale, Row row, float* y) {
    constexpr int chains = 4;  // one sum would wait for itself
    for (std::int64_t i = 0; i < floats; i += native_lanes) {
        V sum[chains] = {};
        for (std::int64_t k = 0; k < n; k += chains)
            for (std::int64_t c = 0; c < std::min<std::int64_t>(chains, n - k); ++c)
                sum[c] += scale(k + c) * load(row(k + c) + i);
        V total = load(y + i);
        for (const V& part : sum) total += part;
        store(y + i, total);
    }
}

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
/// Blocks of `size` lanes beside the diagonal change places, then those of twice the size.
template <int size, int... L>
void swap_blocks(V (&rows)[native_lanes], std::integer_sequence<int, L...> lanes) {
    for (int r = 0; r < native_lanes; ++r) {
        if (r & size) continue;
        const V a = rows[r], b = rows[r + size];
        rows[r] = __builtin_shufflevector(a, b, (L & size ? native_lanes + L - size : L)...);
        rows[r + size] = __builtin_shufflevector(a, b, (L & size ? native_lanes + L : L + size)...);
    }
    if constexpr (2 * size < native_lanes) swap_blocks<2 * size>(rows, lanes);
}
#endif

/// Lane l of row r and lane r of row l change places.
inline void transpose(V (&rows)[native_lanes]) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    swap_blocks<1>(rows, std::make_integer_sequence<int, native_lanes>{});
#else
    for (int r = 0; r < native_lanes; ++r)
        for (int l = r + 1; l < native_lanes; ++l) {
            const float lane = rows[r][l];
            rows[r][l] = rows[l][r];
            rows[l][r] = lane;
        }
#endif
}

/// out[k] = row(k) . x for native_lanes rows of `floats` numbers, a multiple of native_lanes.
template <class Row>
V dots(std::int64_t floats, const float* x, Row row) {
    V products[native_lanes] = {};
    for (std::int64_t i = 0; i < floats; i += native_lanes) {
        const V part = load(x + i);
        for (int k = 0; k < native_lanes; ++k) products[k] += part * load(row(k) + i);
    }
    transpose(products);
    V sum = products[0];
    for (int l = 1; l < native_lanes; ++l) sum += products[l];
    return sum;
}

/// A tile is tile_rows x (1 to tile_vectors) vectors of sums, as many as the registers hold.
inline constexpr int tile_rows = native_lanes == 16 ? 8 : 4;
inline constexpr int tile_vectors = native_lanes == 4 ? 2 : 3;

/// g[j][i] += sign * sum_k a[k][j] a[k][i] for `tile_rows` rows j and C vectors of columns i.
template <int sign, int C>
void add_tile(const float* a, std::int64_t n, std::int64_t ld, std::int64_t j, std::int64_t i,
              float* g) {
    constexpr auto every = std::make_index_sequence<tile_rows * C>{};
    V acc[tile_rows * C];
    [&]<std::size_t... T>(std::index_sequence<T...>) {
        ((acc[T] = load(g + (j + T / C) * ld + i + (T % C) * native_lanes)), ...);
    }(every);
    for (std::int64_t k = 0; k < n; ++k) {
        const float* row = a + k * ld;
        V column[C];
        for (int c = 0; c < C; ++c) column[c] = load(row + i + c * native_lanes);
        [&]<std::size_t... T>(std::index_sequence<T...>) {
            ((acc[T] += (sign * row[j + T / C]) * column[T % C]), ...);
        }(every);
    }
    [&]<std::size_t... T>(std::index_sequence<T...>) {
        (store(g + (j + T / C) * ld + i + (T % C) * native_lanes, acc[T]), ...);
    }(every);
}

/// Upper triangle, in blocks of native_lanes, of g += sign * a^T a, where a has n rows; rows
/// [first, last) of g, multiples of native_lanes. Both have `ld` floats a row.
template <int sign>
void add_product(const float* a, std::int64_t n, std::int64_t ld, std::int64_t first,
                 std::int64_t last, float* g) {
    for (std::int64_t j = first; j < last; j += tile_rows) {
        std::int64_t i = j / native_lanes * native_lanes;
        while (i < ld) {
            const std::int64_t vectors = (ld - i) / native_lanes;
            // Four vectors are two tiles of two: a tile of one loads as much as it multiplies.
            if (vectors >= 3 && vectors != 4 && tile_vectors >= 3) {
                add_tile<sign, tile_vectors>(a, n, ld, j, i, g);
                i += tile_vectors * native_lanes;
            } else if (vectors >= 2) {
                add_tile<sign, 2>(a, n, ld, j, i, g);
                i += 2 * native_lanes;
            } else {
                add_tile<sign, 1>(a, n, ld, j, i, g);
                i += native_lanes;
            }
        }
    }
}

}  // namespace mixedals
