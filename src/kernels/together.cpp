#include "together.hpp"

#include <algorithm>
#include <cmath>

#include "tiles.hpp"

namespace mixedals {
namespace {

constexpr int W = native_lanes;

// Columns of a panel. A tile is as many rows by tile_columns, as the registers hold.
constexpr int width = 4;
constexpr int tile_columns = W == 16 ? 4 : 2;

/// t[r][c] -= sum over k < n of a[k][r] b[k][c], rows of a and b `width` vectors apart.
template <int C>
void subtract_product(const float* a, const float* b, std::int64_t n, V (&t)[width][C]) {
    for (std::int64_t k = 0; k < n; ++k) {
        V column[C];
        for (int c = 0; c < C; ++c) column[c] = load(b + (k * width + c) * W);
        for (int r = 0; r < width; ++r) {
            const V row = load(a + (k * width + r) * W);
            for (int c = 0; c < C; ++c) t[r][c] -= row * column[c];
        }
    }
}

}  // namespace

float* Together::panel(std::int64_t block) {
    return panels_.data() + width * width * (block * (block + 1) / 2) * W;
}

void Together::solve(const std::array<System, most>& systems, const std::array<float, most>& ridge,
                     int count) {
    interleave(systems, ridge, count);
    for (std::int64_t block = 0; block < blocks_; ++block) factorise_block(block);
    solve_upper();
}

/// Unknowns that a system doesn't have get the equation v = 0.
void Together::interleave(const std::array<System, most>& systems,
                          const std::array<float, most>& ridge, int count) {
    std::int64_t n = 0;
    for (int l = 0; l < W; ++l) {
        sizes_[l] = l < count ? systems[l].n : 0;
        good_[l] = 1;
        n = std::max(n, sizes_[l]);
    }
    blocks_ = (n + width - 1) / width;
    stride_ = padded(blocks_ * width);
    const auto grow = [](std::vector<float>& memory, std::int64_t floats) {
        if (static_cast<std::int64_t>(memory.size()) < floats)
            memory.resize(static_cast<std::size_t>(floats));
    };
    grow(panels_, width * width * (stride_ / width * (stride_ / width + 1) / 2) * W);
    for (auto* memory : {&y_, &inverse_, &v_}) grow(*memory, stride_ * W);
    const auto transposed = [&](auto row_of, std::int64_t j, std::int64_t i, V(&out)[W]) {
        for (int l = 0; l < W; ++l) out[l] = j < sizes_[l] && i < systems[l].ld ? row_of(l) : V{};
        transpose(out);
    };
    V columns[W];
    for (std::int64_t j = 0; j < blocks_ * width; ++j) {
        for (std::int64_t i = j / W * W; i < stride_; i += W) {
            transposed([&](int l) { return load(&systems[l].matrix[j * systems[l].ld + i]); }, j, i,
                       columns);
            for (int c = 0; c < W; ++c) {
                const std::int64_t block = (i + c) / width;
                if (block >= j / width)
                    store(panel(block) + (j * width + (i + c) % width) * W, columns[c]);
            }
        }
        float* diagonal = panel(j / width) + (j * width + j % width) * W;
        for (int l = 0; l < W; ++l) diagonal[l] = j < sizes_[l] ? diagonal[l] + ridge[l] : 1.0f;
    }
    for (std::int64_t i = 0; i < stride_; i += W) {
        transposed([&](int l) { return load(&systems[l].rhs[i]); }, 0, i, columns);
        for (int c = 0; c < W; ++c) store(&y_[(i + c) * W], columns[c]);
    }
}

/// The rows of the factor U that a panel's columns stand for, and of y = U^-T rhs.
void Together::factorise_block(std::int64_t block) {
    const std::int64_t first = block * width;
    float* own = panel(block);
    float* inverse = &inverse_[first * W];

    V t[width][width];
    for (int r = 0; r < width; ++r)
        for (int c = 0; c < width; ++c) t[r][c] = load(own + ((first + r) * width + c) * W);
    V diagonal[width];
    for (int r = 0; r < width; ++r) diagonal[r] = t[r][r];
    subtract_product<width>(own, own, first, t);
    for (int r = 0; r < width; ++r) {
        for (int l = 0; l < W; ++l) {
            good_[l] &= t[r][r][l] > least_pivot * diagonal[r][l];
            inverse[r * W + l] = 1.0f / std::sqrt(good_[l] ? t[r][r][l] : 1.0f);
        }
        const V scale = load(inverse + r * W);
        for (int c = r + 1; c < width; ++c) {
            t[r][c] = scale * t[r][c];
            store(own + ((first + r) * width + c) * W, t[r][c]);
        }
        for (int below = r + 1; below < width; ++below)
            for (int c = below; c < width; ++c) t[below][c] -= t[r][below] * t[r][c];
    }
    const auto divide = [&]<int C>(V(&rows)[width][C]) {
        for (int r = 0; r < width; ++r) {
            for (int c = 0; c < C; ++c) {
                for (int above = 0; above < r; ++above)
                    rows[r][c] -= load(own + ((first + above) * width + r) * W) * rows[above][c];
                rows[r][c] = load(inverse + r * W) * rows[r][c];
            }
        }
    };
    for (std::int64_t right = block + 1; right < blocks_; ++right) {
        for (int c0 = 0; c0 < width; c0 += tile_columns) {
            float* other = panel(right) + c0 * W;
            float* at = other + first * width * W;
            V tile[width][tile_columns];
            for (int r = 0; r < width; ++r)
                for (int c = 0; c < tile_columns; ++c) tile[r][c] = load(at + (r * width + c) * W);
            subtract_product<tile_columns>(own, other, first, tile);
            divide(tile);
            for (int r = 0; r < width; ++r)
                for (int c = 0; c < tile_columns; ++c) store(at + (r * width + c) * W, tile[r][c]);
        }
    }
    V y[width][1];
    for (int r = 0; r < width; ++r) y[r][0] = load(&y_[(first + r) * W]);
    for (std::int64_t k = 0; k < first; ++k)
        for (int r = 0; r < width; ++r)
            y[r][0] -= load(own + (k * width + r) * W) * load(&y_[k * W]);
    divide(y);
    for (int r = 0; r < width; ++r) store(&y_[(first + r) * W], y[r][0]);
}

/// y becomes U^-1 y, and v that of each system.
void Together::solve_upper() {
    for (std::int64_t block = blocks_ - 1; block >= 0; --block) {
        const std::int64_t first = block * width;
        const float* own = panel(block);
        V v[width];
        for (int r = width - 1; r >= 0; --r) {
            v[r] = load(&y_[(first + r) * W]);
            for (int c = r + 1; c < width; ++c)
                v[r] -= load(own + ((first + r) * width + c) * W) * v[c];
            v[r] = load(&inverse_[(first + r) * W]) * v[r];
            store(&y_[(first + r) * W], v[r]);
        }
        for (std::int64_t k = 0; k < first; ++k) {
            V sum = load(&y_[k * W]);
            for (int c = 0; c < width; ++c) sum -= load(own + (k * width + c) * W) * v[c];
            store(&y_[k * W], sum);
        }
    }
    for (std::int64_t i = 0; i < stride_; i += W) {
        V rows[W];
        for (int c = 0; c < W; ++c) rows[c] = load(&y_[(i + c) * W]);
        transpose(rows);
        for (int l = 0; l < W; ++l) store(&v_[l * stride_ + i], rows[l]);
    }
}

}  // namespace mixedals
