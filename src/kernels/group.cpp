#include "group.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "threads.hpp"

namespace mixedals {
namespace {

/// Ratings a task, where a task only streams over them.
constexpr std::int64_t grain = 1 << 18;

/// Spans of the input, one a thread, as few as keep the threads' tables of counts small.
struct Slices {
    std::int64_t n;
    std::int64_t count;

    Slices(std::int64_t size, std::int64_t n_keys, int n_threads)
        : n(size),
          count(std::clamp<std::int64_t>(4 * size / std::max<std::int64_t>(n_keys, 1), 1,
                                         std::max(n_threads, 1))) {}
    std::int64_t first(std::int64_t slice) const {
        return n / count * slice + std::min(slice, n % count);
    }
};

/// Stable counting sort. `key(i)` is the key of input i; `place(i, to)` puts it at its position.
/// Ascending inputs have a `place` of their own, that `make_place(the first)` returns.
template <class Key, class MakePlace>
void counting_sort(std::int64_t n, std::int64_t n_keys, std::int64_t* indptr, int n_threads,
                   Key key, MakePlace make_place) {
    const Slices slices(n, n_keys, n_threads);
    std::vector<std::vector<std::int64_t>> at(static_cast<std::size_t>(slices.count));
    parallel(slices.count, n_threads, [&] {
        return [&](std::int64_t s) {
            auto& count = at[static_cast<std::size_t>(s)];
            count.assign(static_cast<std::size_t>(n_keys), 0);
            for (std::int64_t i = slices.first(s); i < slices.first(s + 1); ++i) ++count[key(i)];
        };
    });
    std::int64_t total = 0;
    for (std::int64_t k = 0; k < n_keys; ++k) {
        indptr[k] = total;
        for (auto& count : at) {
            const std::int64_t here = count[k];
            count[k] = total;
            total += here;
        }
    }
    indptr[n_keys] = total;
    parallel(slices.count, n_threads, [&] {
        return [&](std::int64_t s) {
            auto& next = at[static_cast<std::size_t>(s)];
            auto place = make_place(slices.first(s));
            for (std::int64_t i = slices.first(s); i < slices.first(s + 1); ++i)
                place(i, next[key(i)]++);
        };
    });
}

}  // namespace

RatingArrays transpose(const Ratings& ratings, int n_threads) {
    const std::int64_t n = ratings.indptr[ratings.n_rows];
    const auto size = static_cast<std::size_t>(n);
    RatingArrays out{Buffer<std::int64_t>(static_cast<std::size_t>(ratings.n_columns + 1)),
                     Buffer<std::int32_t>(size), Buffer<float>(size),
                     Buffer<float>(ratings.weights ? size : 0)};

    counting_sort(
        n, ratings.n_columns, out.indptr.data(), n_threads,
        [&](std::int64_t i) { return ratings.indices[i]; },
        [&](std::int64_t start) {
            const std::int64_t* end = ratings.indptr + ratings.n_rows + 1;
            const std::int64_t* next_row = std::upper_bound(ratings.indptr, end, start);
            return [&, next_row](std::int64_t i, std::int64_t to) mutable {
                while (*next_row <= i) ++next_row;
                out.indices[to] = static_cast<std::int32_t>(next_row - ratings.indptr - 1);
                out.values[to] = ratings.values[i];
                if (ratings.weights) out.weights[to] = ratings.weights[i];
            };
        });
    return out;
}

template <class Position>
void sort_pairs(const std::int32_t* rows, const std::int32_t* columns, std::int64_t n,
                std::int64_t n_rows, std::int64_t n_columns, std::int64_t* indptr, Position* order,
                int n_threads) {
    Buffer<Position> by_column(static_cast<std::size_t>(n));
    std::vector<std::int64_t> column_indptr(static_cast<std::size_t>(n_columns + 1));
    counting_sort(
        n, n_columns, column_indptr.data(), n_threads, [&](std::int64_t i) { return columns[i]; },
        [&](std::int64_t) {
            return
                [&](std::int64_t i, std::int64_t to) { by_column[to] = static_cast<Position>(i); };
        });
    counting_sort(
        n, n_rows, indptr, n_threads, [&](std::int64_t i) { return rows[by_column[i]]; },
        [&](std::int64_t) {
            return [&](std::int64_t i, std::int64_t to) { order[to] = by_column[i]; };
        });
}

template void sort_pairs(const std::int32_t*, const std::int32_t*, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t*, std::uint32_t*, int);
template void sort_pairs(const std::int32_t*, const std::int32_t*, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t*, std::int64_t*, int);

template <class Value, class Position>
void take(const Value* from, const Position* positions, std::int64_t n, Value* out, int n_threads) {
    parallel_spans(n, grain, n_threads, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) out[i] = from[positions[i]];
    });
}

template void take(const float*, const std::uint32_t*, std::int64_t, float*, int);
template void take(const float*, const std::int64_t*, std::int64_t, float*, int);
template void take(const std::int32_t*, const std::uint32_t*, std::int64_t, std::int32_t*, int);
template void take(const std::int32_t*, const std::int64_t*, std::int64_t, std::int32_t*, int);
template void take(const std::int64_t*, const std::uint32_t*, std::int64_t, std::int64_t*, int);
template void take(const std::int64_t*, const std::int64_t*, std::int64_t, std::int64_t*, int);

template <class Id>
bool encode_integers(const Id* ids, std::int64_t n, std::vector<Id>& vocabulary,
                     std::int32_t* codes, int n_threads) {
    vocabulary.clear();
    if (n == 0) return true;
    Id base = ids[0], greatest = ids[0];
    std::mutex guard;
    parallel_spans(n, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        Id low = ids[first], high = low;
        for (std::int64_t i = first; i < last; ++i) {
            low = std::min(low, ids[i]);
            high = std::max(high, ids[i]);
        }
        const std::lock_guard lock(guard);
        base = std::min(base, low);
        greatest = std::max(greatest, high);
    });
    // The range in unsigned arithmetic: it can't overflow.
    const std::uint64_t range =
        static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(base);
    const std::uint64_t worth = 4 * static_cast<std::uint64_t>(n) + 65536;
    if (range >= std::min<std::uint64_t>(worth, std::numeric_limits<std::int32_t>::max()))
        return false;
    const auto offset = [base](Id id) {
        return static_cast<std::size_t>(static_cast<std::uint64_t>(id) -
                                        static_cast<std::uint64_t>(base));
    };
    std::vector<std::int32_t> code_of(range + 1, -1);
    parallel_spans(n, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
            const std::atomic_ref present(code_of[offset(ids[i])]);
            if (present.load(std::memory_order_relaxed) < 0)
                present.store(0, std::memory_order_relaxed);
        }
    });
    std::int32_t next = 0;
    for (std::uint64_t at = 0; at <= range; ++at) {
        if (code_of[at] < 0) continue;
        code_of[at] = next++;
        vocabulary.push_back(static_cast<Id>(static_cast<std::uint64_t>(base) + at));
    }
    parallel_spans(n, grain, n_threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) codes[i] = code_of[offset(ids[i])];
    });
    return true;
}

template bool encode_integers(const std::int32_t*, std::int64_t, std::vector<std::int32_t>&,
                              std::int32_t*, int);
template bool encode_integers(const std::int64_t*, std::int64_t, std::vector<std::int64_t>&,
                              std::int32_t*, int);

}  // namespace mixedals
