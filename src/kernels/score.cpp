#include "score.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "threads.hpp"

namespace mixedals {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

// A tile of scores that stays in the second-level cache.
constexpr std::int64_t tile_queries = 64;
constexpr std::int64_t tile_items = 1024;

struct Entry {
    float score;
    std::int32_t item;

    /// Better comes first; equal scores by position.
    bool operator<(const Entry& other) const {
        return score > other.score || (score == other.score && item < other.item);
    }
};

/// The best k entries offered so far, as a heap with the worst of them on top.
class Best {
  public:
    explicit Best(std::int64_t k) : k_(static_cast<std::size_t>(k)) {}

    void clear() { heap_.clear(), threshold_ = -std::numeric_limits<float>::infinity(); }
    bool full() const { return heap_.size() == k_; }
    /// Only scores above this can get in once the heap is full; items come in rising order.
    float threshold() const { return threshold_; }

    void offer(Entry entry) {
        if (full()) {
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.back() = entry;
        } else {
            heap_.push_back(entry);
        }
        std::push_heap(heap_.begin(), heap_.end());
        if (full()) threshold_ = heap_.front().score;
    }

    void write(std::int32_t* ids, float* scores) {
        std::sort(heap_.begin(), heap_.end());
        for (std::size_t i = 0; i < k_; ++i) {
            const bool there = i < heap_.size();
            ids[i] = there ? heap_[i].item : -1;
            scores[i] = there ? heap_[i].score : std::numeric_limits<float>::quiet_NaN();
        }
    }

  private:
    std::size_t k_;
    std::vector<Entry> heap_;
    float threshold_ = 0;
};

}  // namespace

void predict_pairs(Matrix left, Matrix right, const std::int32_t* left_rows,
                   const std::int32_t* right_rows, std::int64_t n, float* out, int n_threads) {
    parallel_spans(n, 16384, n_threads, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            if (left_rows[i] < 0 || right_rows[i] < 0) {
                out[i] = std::numeric_limits<float>::quiet_NaN();
                continue;
            }
            const Eigen::Map<const Eigen::VectorXf> x(left.row(left_rows[i]), left.columns);
            const Eigen::Map<const Eigen::VectorXf> y(right.row(right_rows[i]), right.columns);
            out[i] = x.dot(y);
        }
    });
}

void predict_grid(Matrix left, Matrix right, float* out, int n_threads) {
    const ConstMap columns(right.data, right.rows, right.columns);
    parallel_spans(left.rows, tile_queries, n_threads, [=](std::int64_t first, std::int64_t last) {
        const ConstMap rows(left.row(first), last - first, left.columns);
        Eigen::Map<RowMajor> block(out + first * right.rows, last - first, right.rows);
        block.noalias() = rows * columns.transpose();
    });
}

void top_k(Matrix queries, Matrix items, std::int64_t k, const std::int64_t* left_out_indptr,
           const std::int32_t* left_out, std::int32_t* ids, float* scores, int n_threads) {
    parallel((queries.rows + tile_queries - 1) / tile_queries, n_threads, [&] {
        return [&, tile = RowMajor(tile_queries, tile_items),
                best = std::vector<Best>(tile_queries, Best(k)),
                next = std::vector<std::int64_t>(tile_queries)](std::int64_t task) mutable {
            const std::int64_t first = task * tile_queries;
            const std::int64_t n = std::min(tile_queries, queries.rows - first);
            const ConstMap left(queries.row(first), n, queries.columns);
            for (std::int64_t q = 0; q < n; ++q) {
                best[q].clear();
                next[q] = left_out_indptr[first + q];
            }
            for (std::int64_t start = 0; start < items.rows; start += tile_items) {
                const std::int64_t width = std::min(tile_items, items.rows - start);
                const ConstMap right(items.row(start), width, items.columns);
                tile.topLeftCorner(n, width).noalias() = left * right.transpose();
                for (std::int64_t q = 0; q < n; ++q) {
                    float* row = tile.row(q).data();
                    const std::int64_t end = left_out_indptr[first + q + 1];
                    for (; next[q] < end && left_out[next[q]] < start + width; ++next[q])
                        row[left_out[next[q]] - start] = std::numeric_limits<float>::quiet_NaN();
                    for (std::int64_t i = 0; i < width; ++i) {
                        // NaN compares false; an infinite score may still fill a heap.
                        if (row[i] > best[q].threshold() || (!best[q].full() && row[i] == row[i]))
                            best[q].offer({row[i], static_cast<std::int32_t>(start + i)});
                    }
                }
            }
            for (std::int64_t q = 0; q < n; ++q)
                best[q].write(ids + (first + q) * k, scores + (first + q) * k);
        };
    });
}

}  // namespace mixedals
