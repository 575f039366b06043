#include "features.hpp"

#include <Eigen/Core>

#include "lanes.hpp"
#include "threads.hpp"

namespace mixedals {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::Map<RowMajor, 0, Eigen::OuterStride<>>;
using ConstMap = Eigen::Map<const RowMajor>;

constexpr std::int64_t grain = 512;

std::int64_t stride_for(int p) {
    if (p < 8) return 8;
    if (p <= max_small) return 16;
    return (p + native_lanes - 1) / native_lanes * native_lanes;
}

}  // namespace

Features make_features(Matrix common, const float* known, const float* projection, int width,
                       bool with_bias, int n_threads) {
    const int p = width + (with_bias ? 1 : 0);
    Features out{p, stride_for(p), {}, known};
    out.data.resize(static_cast<std::size_t>(common.rows * out.stride));
    parallel_spans(common.rows, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t n = last - first;
        const ConstMap from(common.row(first), n, common.columns);
        Strided to(out.data.data() + first * out.stride, n, width, Eigen::OuterStride<>(out.stride));
        if (projection)
            to.noalias() = from * ConstMap(projection, common.columns, width);
        else
            to = from.leftCols(width);
        for (std::int64_t i = first; i < last; ++i) {
            float* row = out.data.data() + i * out.stride;
            if (with_bias) row[width] = 1.0f;
            if (p <= max_small && known) row[p] = -known[i];
        }
    });
    return out;
}

void to_common(Matrix factors, const float* projection, Rows rows, float* out, std::int64_t d,
               int n_threads) {
    const std::int64_t p = factors.columns;
    parallel_spans(rows.n, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        const ConstMap from(factors.row(first), last - first, p);
        RowMajor block = RowMajor::Zero(last - first, d);
        if (projection)
            block.noalias() = from * ConstMap(projection, d, p).transpose();
        else
            block.leftCols(p) = from;
        for (std::int64_t i = first; i < last; ++i)
            std::copy_n(block.data() + (i - first) * d, d, out + rows.data[i] * d);
    });
}

}  // namespace mixedals
