#include "score.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <utility>

#include "lanes.hpp"
#include "memory.hpp"
#include "threads.hpp"

namespace mixedals {
namespace {

// A tile of scores that stays in the second-level cache.
constexpr std::int64_t tile_queries = 64;
constexpr std::int64_t tile_items = 1024;

// Queries and vectors of items whose scores are in registers together.
constexpr int block_queries = 4;
constexpr int block_vectors = native_lanes == 16 ? 4 : 2;
constexpr std::int64_t block_items = block_vectors * native_lanes;

std::int64_t blocks_of(std::int64_t n_items) { return (n_items + block_items - 1) / block_items; }

/// Items in columns: number j of all items of a block, then number j + 1. A score then sums over j
/// in the same order wherever its query and its item stand, so it has the same bits in any batch.
class Columns {
  public:
    Columns(Matrix items, int n_threads)
        : d_(items.columns),
          blocks_(blocks_of(items.rows)),
          data_(static_cast<std::size_t>(blocks_ * block_items * d_)) {
        parallel_spans(blocks_, 16, n_threads, [&](std::int64_t first, std::int64_t last) {
            for (std::int64_t b = first; b < last; ++b)
                for (std::int64_t j = 0; j < d_; ++j)
                    for (std::int64_t l = 0; l < block_items; ++l) {
                        const std::int64_t item = b * block_items + l;
                        data_[(b * d_ + j) * block_items + l] =
                            item < items.rows ? items.row(item)[j] : 0.0f;
                    }
        });
    }

    /// Scores of `n` queries for the blocks [first, last), `ld` floats a query.
    void scores(const float* queries, std::int64_t n, std::int64_t first, std::int64_t last,
                float* out, std::int64_t ld) const {
        for (std::int64_t b = first; b < last; ++b) {
            float* to = out + (b - first) * block_items;
            std::int64_t q = 0;
            for (; q + block_queries <= n; q += block_queries)
                block<block_queries>(queries + q * d_, b, to + q * ld, ld);
            for (; q < n; ++q) block<1>(queries + q * d_, b, to + q * ld, ld);
        }
    }

  private:
    template <int Q>
    void block(const float* queries, std::int64_t b, float* out, std::int64_t ld) const {
        using Row = Lanes<native_lanes>;
        constexpr auto every = std::make_index_sequence<Q * block_vectors>{};
        Row sum[Q * block_vectors] = {};
        for (std::int64_t j = 0; j < d_; ++j) {
            const float* items = data_.data() + (b * d_ + j) * block_items;
            [&]<std::size_t... T>(std::index_sequence<T...>) {
                (sum[T].add(queries[T / block_vectors * d_ + j],
                            Row::load(items + T % block_vectors * native_lanes)),
                 ...);
            }(every);
        }
        [&]<std::size_t... T>(std::index_sequence<T...>) {
            (sum[T].store(out + T / block_vectors * ld + T % block_vectors * native_lanes), ...);
        }(every);
    }

    std::int64_t d_, blocks_;
    Buffer<float> data_;
};

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
    const Columns columns(right, n_threads);
    parallel((left.rows + tile_queries - 1) / tile_queries, n_threads, [&] {
        return [&, tile = Buffer<float>(tile_queries * tile_items)](std::int64_t task) mutable {
            const std::int64_t first = task * tile_queries;
            const std::int64_t n = std::min(tile_queries, left.rows - first);
            for (std::int64_t start = 0; start < right.rows; start += tile_items) {
                const std::int64_t width = std::min(tile_items, right.rows - start);
                const std::int64_t block = start / block_items;
                columns.scores(left.row(first), n, block, block + blocks_of(width), tile.data(),
                               tile_items);
                for (std::int64_t q = 0; q < n; ++q)
                    std::copy_n(tile.data() + q * tile_items, width,
                                out + (first + q) * right.rows + start);
            }
        };
    });
}

void top_k(Matrix queries, Matrix items, std::int64_t k, const std::int64_t* left_out_indptr,
           const std::int32_t* left_out, std::int32_t* ids, float* scores, int n_threads) {
    const Columns columns(items, n_threads);
    parallel((queries.rows + tile_queries - 1) / tile_queries, n_threads, [&] {
        return [&, tile = Buffer<float>(tile_queries * tile_items),
                best = std::vector<Best>(tile_queries, Best(k)),
                next = std::vector<std::int64_t>(tile_queries)](std::int64_t task) mutable {
            const std::int64_t first = task * tile_queries;
            const std::int64_t n = std::min(tile_queries, queries.rows - first);
            for (std::int64_t q = 0; q < n; ++q) {
                best[q].clear();
                next[q] = left_out_indptr[first + q];
            }
            for (std::int64_t start = 0; start < items.rows; start += tile_items) {
                const std::int64_t width = std::min(tile_items, items.rows - start);
                const std::int64_t block = start / block_items;
                columns.scores(queries.row(first), n, block, block + blocks_of(width), tile.data(),
                               tile_items);
                for (std::int64_t q = 0; q < n; ++q) {
                    float* row = tile.data() + q * tile_items;
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
