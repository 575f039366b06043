// The border to Python: checks what comes in, releases the GIL, owns what goes out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "../memory.hpp"
#include "../ratings.hpp"
#include "../threads.hpp"

namespace nb = nanobind;

namespace mixedals {

template <class T, int dimensions>
using In = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using In1 = In<T, 1>;
template <class T>
using In2 = In<T, 2>;
template <class T>
using Maybe1 = std::optional<In1<T>>;
using MaybeMatrix = std::optional<In2<float>>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

template <class A>
std::int64_t size(const A& a, std::size_t axis = 0) {
    return static_cast<std::int64_t>(a.shape(axis));
}

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
const T* data_of(const Maybe1<T>& a, std::int64_t n, const char* message) {
    if (!a) return nullptr;
    require(size(*a) == n, message);
    return a->data();
}

/// The buffer as an array, which owns its memory from now on.
template <class T, class Array = Out<T>>
Array give(Buffer<T>&& from, std::initializer_list<std::size_t> shape) {
    T* memory = from.release();
    const nb::capsule owner(memory, [](void* p) noexcept { std::free(p); });
    return Array(memory, shape, owner);
}

/// An array of which the contents are unset.
template <class T>
Out<T> make(std::initializer_list<std::size_t> shape) {
    std::size_t n = 1;
    for (const std::size_t extent : shape) {
        if (extent > 0 && n > PTRDIFF_MAX / extent) throw std::bad_alloc();
        n *= extent;
    }
    return give(Buffer<T>(n), shape);
}

/// The buffer as an array that can't be changed, for it may be the checked contents of a Csr.
template <class T>
Out<const T> seal(Buffer<T>&& from) {
    const std::size_t n = from.size();
    return give<T, Out<const T>>(std::move(from), {n});
}

inline int threads(int n) {
    require(n >= 1, "n_threads must be at least 1");
    return n;
}

inline Matrix matrix(const In2<float>& a) { return {a.data(), size(a), size(a, 1)}; }

/// Every index in [0, limit)?
template <class Index>
bool all_below(const Index* indices, std::int64_t n, std::int64_t limit, int n_threads = 1) {
    std::atomic<bool> good{true};
    parallel_spans(n, 1 << 20, n_threads, [&](std::int64_t first, std::int64_t last) {
        Index least = 0, greatest = 0;
        for (std::int64_t i = first; i < last; ++i) {
            least = std::min(least, indices[i]);
            greatest = std::max(greatest, indices[i]);
        }
        if (least < 0 || std::cmp_greater_equal(greatest, limit)) good = false;
    });
    return good;
}

inline void check_indptr(const In1<std::int64_t>& indptr, std::int64_t nnz) {
    require(size(indptr) >= 1, "indptr is empty");
    const std::int64_t* at = indptr.data();
    const std::int64_t n = size(indptr) - 1;
    bool rising = at[0] == 0 && at[n] == nnz;
    for (std::int64_t i = 0; i < n; ++i) rising &= at[i] <= at[i + 1];
    require(rising, "indptr must rise from 0 to the number of indices");
}

/// An array that is taken as it is: another type or layout is an error, not a silent copy that
/// would wrap large indices round, or keep what was meant for the caller's `out`.
inline auto array(const char* name) { return nb::arg(name).noconvert(); }
inline auto maybe_array(const char* name) { return array(name).none(); }

// What each file of this folder adds to the module.
void bind_ratings(nb::module_& m);
void bind_updates(nb::module_& m);
void bind_scores(nb::module_& m);
void bind_random(nb::module_& m);

}  // namespace mixedals
