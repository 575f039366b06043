#include "features.hpp"

#include <algorithm>
#include <vector>

#include "threads.hpp"
#include "tiles.hpp"

namespace mixedals {
namespace {

constexpr int W = native_lanes;
constexpr std::int64_t grain = 512;

std::int64_t stride_for(int p) {
    if (p < 8) return 8;
    if (p <= max_small) return 16;
    return padded(p);
}

/// x^T M for one row x at a time. A row's result has the same bits wherever the row stands, which
/// a library's matrix product doesn't promise: a user folded in is the user that was trained.
class RowTimes {
  public:
    /// M is n x columns with its numbers at m[i * row_step + j * column_step].
    RowTimes(const float* m, std::int64_t n, std::int64_t columns, std::int64_t row_step,
             std::int64_t column_step)
        : n_(n), ld_(padded(columns)), m_(static_cast<std::size_t>(n * ld_), 0.0f) {
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                m_[i * ld_ + j] = m[i * row_step + j * column_step];
    }

    std::int64_t padded_columns() const { return ld_; }

    /// out gets padded_columns() floats.
    void operator()(const float* x, float* out) const {
        using Row = Lanes<W>;
        for (std::int64_t j = 0; j < ld_; j += W) {
            Row sum = {};
            for (std::int64_t i = 0; i < n_; ++i) sum.add(x[i], Row::load(m_.data() + i * ld_ + j));
            sum.store(out + j);
        }
    }

  private:
    std::int64_t n_, ld_;
    std::vector<float> m_;
};

}  // namespace

Features make_features(Matrix common, const float* known, const float* projection, int width,
                       bool with_bias, int n_threads) {
    const int p = width + (with_bias ? 1 : 0);
    const std::int64_t stride = stride_for(p);
    Features out{p, stride, Buffer<float>(static_cast<std::size_t>(common.rows * stride)), known};
    const std::int64_t d = common.columns;
    const RowTimes product(projection, projection ? d : 0, width, width, 1);
    parallel_spans(common.rows, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> z(static_cast<std::size_t>(product.padded_columns()));
        for (std::int64_t i = first; i < last; ++i) {
            const float* from = common.row(i);
            if (projection) {
                product(from, z.data());
                from = z.data();
            }
            float* row = out.data.data() + i * stride;
            std::copy_n(from, width, row);
            std::fill(row + width, row + stride, 0.0f);
            if (with_bias) row[width] = 1.0f;
            if (p <= max_small && known) row[p] = -known[i];
        }
    });
    return out;
}

void to_common(Matrix factors, const float* projection, Rows rows, float* out, std::int64_t d,
               int n_threads) {
    const std::int64_t p = factors.columns;
    const RowTimes product(projection, projection ? p : 0, d, 1, p);
    parallel_spans(rows.n, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        std::vector<float> x(static_cast<std::size_t>(product.padded_columns()));
        for (std::int64_t i = first; i < last; ++i) {
            float* to = out + rows.data[i] * d;
            if (projection) {
                product(factors.row(i), x.data());
                std::copy_n(x.data(), d, to);
            } else {
                std::copy_n(factors.row(i), p, to);
                std::fill_n(to + p, d - p, 0.0f);
            }
        }
    });
}

}  // namespace mixedals
