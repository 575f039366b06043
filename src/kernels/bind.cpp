// The only file that knows Python: checks what comes in, releases the GIL, owns what goes out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "cpu.hpp"
#include "group.hpp"
#include "memory.hpp"
#include "projection.hpp"
#include "random.hpp"
#include "ridge.hpp"
#include "score.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace mixedals;

namespace {

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

void require(bool condition, const char* message) {
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

int threads(int n) {
    require(n >= 1, "n_threads must be at least 1");
    return n;
}

Matrix matrix(const In2<float>& a) { return {a.data(), size(a), size(a, 1)}; }

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

void check_indptr(const In1<std::int64_t>& indptr, std::int64_t nnz) {
    require(size(indptr) >= 1, "indptr is empty");
    const std::int64_t* at = indptr.data();
    const std::int64_t n = size(indptr) - 1;
    bool rising = at[0] == 0 && at[n] == nnz;
    for (std::int64_t i = 0; i < n; ++i) rising &= at[i] <= at[i + 1];
    require(rising, "indptr must rise from 0 to the number of indices");
}

/// Checked ratings in compressed rows. To have one is to know that its indices are in bounds.
class Csr {
  public:
    Csr(In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> values,
        std::int64_t n_columns, Maybe1<float> weights)
        : indptr_(std::move(indptr)),
          indices_(std::move(indices)),
          values_(std::move(values)),
          weights_(std::move(weights)),
          n_columns_(n_columns) {
        require(size(values_) == size(indices_), "values and indices differ in length");
        data_of(weights_, size(indices_), "weights and indices differ in length");
        require(n_columns >= 0 && n_columns <= INT32_MAX, "n_columns must fit 32 bits");
        require(size(indptr_) - 1 <= INT32_MAX, "the number of rows must fit 32 bits");
        check_indptr(indptr_, size(indices_));
        require(all_below(indices_.data(), size(indices_), n_columns), "an index is out of bounds");
    }

    Ratings ratings() const {
        return {n_rows(),        n_columns_,     indptr_.data(),
                indices_.data(), values_.data(), weights_ ? weights_->data() : nullptr};
    }
    std::int64_t n_rows() const { return size(indptr_) - 1; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t nnz() const { return size(indices_); }
    auto indptr() const { return Out<const std::int64_t>(indptr_); }
    auto indices() const { return Out<const std::int32_t>(indices_); }
    auto values() const { return Out<const float>(values_); }
    auto weights() const {
        return weights_ ? std::optional(Out<const float>(*weights_)) : std::nullopt;
    }

    static Csr transposed(const Csr& from, int n_threads) {
        const Ratings view = from.ratings();
        RatingArrays arrays;
        {
            const nb::gil_scoped_release unlocked;
            arrays = transpose(view, threads(n_threads));
        }
        Maybe1<float> weights;
        if (from.weights_) weights = In1<float>(seal(std::move(arrays.weights)));
        return Csr(In1<std::int64_t>(seal(std::move(arrays.indptr))),
                   In1<std::int32_t>(seal(std::move(arrays.indices))),
                   In1<float>(seal(std::move(arrays.values))), view.n_rows, weights);
    }

  private:
    In1<std::int64_t> indptr_;
    In1<std::int32_t> indices_;
    In1<float> values_;
    Maybe1<float> weights_;
    std::int64_t n_columns_;
};

Rows check_rows(const In1<std::int32_t>& rows, std::int64_t n_rows) {
    require(all_below(rows.data(), size(rows), n_rows), "a row is out of bounds");
    return {rows.data(), size(rows)};
}

auto encode(auto ids, int n_threads) {
    using Id = std::remove_const_t<typename decltype(ids)::Scalar>;
    auto codes = make<std::int32_t>({ids.shape(0)});
    std::vector<Id> vocabulary;
    bool done;
    {
        const nb::gil_scoped_release unlocked;
        done = encode_integers(ids.data(), size(ids), vocabulary, codes.data(), threads(n_threads));
    }
    using Result = std::optional<std::tuple<Out<const Id>, Out<std::int32_t>>>;
    if (!done) return Result();
    Buffer<Id> sorted(vocabulary.size());
    std::copy(vocabulary.begin(), vocabulary.end(), sorted.data());
    return Result({seal(std::move(sorted)), codes});
}

/// The order in 32 bits where that is enough: half of the memory.
nb::object order_of_pairs(In1<std::int32_t> rows, In1<std::int32_t> columns, std::int64_t n_rows,
                          std::int64_t n_columns, int n_threads) {
    const std::int64_t n = size(rows);
    require(size(columns) == n, "rows and columns differ in length");
    require(n_rows >= 0 && n_rows <= INT32_MAX && n_columns >= 0 && n_columns <= INT32_MAX,
            "n_rows and n_columns must fit 32 bits");
    require(all_below(rows.data(), n, n_rows, threads(n_threads)), "a row is out of bounds");
    require(all_below(columns.data(), n, n_columns, n_threads), "a column is out of bounds");
    auto indptr = make<std::int64_t>({static_cast<std::size_t>(n_rows + 1)});
    const auto sort = [&](auto order) {
        {
            const nb::gil_scoped_release unlocked;
            sort_pairs(rows.data(), columns.data(), n, n_rows, n_columns, indptr.data(),
                       order.data(), n_threads);
        }
        return nb::cast(std::make_tuple(indptr, order));
    };
    const auto extent = static_cast<std::size_t>(n);
    return n <= UINT32_MAX ? sort(make<std::uint32_t>({extent}))
                           : sort(make<std::int64_t>({extent}));
}

template <class Value, class Position>
auto take_of(In1<Value> from, In1<Position> positions, int n_threads) {
    require(all_below(positions.data(), size(positions), size(from), threads(n_threads)),
            "a position is out of bounds");
    auto out = make<Value>({positions.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        take(from.data(), positions.data(), size(positions), out.data(), n_threads);
    }
    return out;
}

auto solve_rows_of(const Csr& ratings, In1<std::int32_t> rows, In2<float> common,
                   Maybe1<float> known, MaybeMatrix projection, int width, bool with_bias,
                   In1<float> ridge, int n_threads) {
    const Ratings view = ratings.ratings();
    require(size(common) == view.n_columns, "common needs one row for every column of ratings");
    require(width >= 1 && width <= size(common, 1), "width must be between 1 and d");
    if (projection)
        require(size(*projection) == size(common, 1) && size(*projection, 1) == width,
                "projection must be d x width");
    const float* known_data = data_of(known, view.n_columns, "known needs one number a column");
    require(size(ridge) == size(rows), "ridge needs one number for every listed row");
    const Rows list = check_rows(rows, view.n_rows);
    const std::size_t p = static_cast<std::size_t>(width) + (with_bias ? 1 : 0);
    auto factors = make<float>({rows.shape(0), p});
    auto loss = make<double>({rows.shape(0)});
    auto square = make<double>({rows.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        const Features features =
            make_features(matrix(common), known_data, projection ? projection->data() : nullptr,
                          width, with_bias, threads(n_threads));
        solve_rows(view, list, features, ridge.data(), factors.data(), loss.data(), square.data(),
                   n_threads);
    }
    return std::make_tuple(factors, loss, square);
}

/// Calls `work(problem, d, p)` without the GIL, all arguments checked.
template <class Work>
void with_projection_problem(const Csr& ratings, const In1<std::int32_t>& rows,
                             const In2<float>& factors, const In2<float>& common,
                             const Maybe1<float>& known, const Maybe1<float>& known_rows,
                             std::optional<Sample> sample, int n_threads, Work work) {
    const Ratings view = ratings.ratings();
    require(size(common) == view.n_columns, "common needs one row for every column of ratings");
    require(size(factors) == size(rows), "factors needs one row for every listed row");
    require(size(common, 1) >= 1 && size(factors, 1) >= 1, "d and p must be at least 1");
    const float* known_data = data_of(known, view.n_columns, "known needs one number a column");
    const float* row_data = data_of(known_rows, view.n_rows, "known_rows needs one number a row");
    const Rows list = check_rows(rows, view.n_rows);
    const nb::gil_scoped_release unlocked;
    const Features features =
        make_features(matrix(common), known_data, nullptr, static_cast<int>(size(common, 1)), false,
                      threads(n_threads));
    work(ProjectionProblem{view, list, matrix(factors), features, row_data, sample});
}

auto projection_sums_of(
    const Csr& ratings, In1<std::int32_t> rows, In2<float> factors, In2<float> common,
    Maybe1<float> known, Maybe1<float> known_rows,
    std::optional<std::tuple<std::uint64_t, double, In1<std::uint64_t>, In1<std::uint64_t>>> sample,
    int n_threads) {
    std::optional<Sample> kept;
    if (sample) {
        const auto& [key, fraction, row_keys, column_keys] = *sample;
        require(fraction > 0 && fraction <= 1, "the sampled fraction must be in (0, 1]");
        require(size(row_keys) == ratings.n_rows() && size(column_keys) == ratings.n_columns(),
                "a sample needs one key a row and one a column");
        // At fraction 1 there is nothing to leave out.
        if (fraction < 1)
            kept = Sample{key, static_cast<std::uint64_t>(std::ldexp(fraction, 64)),
                          row_keys.data(), column_keys.data()};
    }
    const std::size_t d = common.shape(1), p = factors.shape(1);
    auto packed = make<double>({d * (d + 1) / 2, p * (p + 1) / 2});
    auto rhs = make<double>({d, p});
    with_projection_problem(ratings, rows, factors, common, known, known_rows, kept, n_threads,
                            [&](const ProjectionProblem& problem) {
                                projection_sums(problem, packed.data(), rhs.data(), n_threads);
                            });
    return std::make_tuple(packed, rhs);
}

auto solve_projection_of(In2<double> packed, In2<double> rhs, double beta) {
    const std::size_t d = rhs.shape(0), p = rhs.shape(1);
    require(packed.shape(0) == d * (d + 1) / 2 && packed.shape(1) == p * (p + 1) / 2,
            "packed must be d(d+1)/2 x p(p+1)/2, as rhs is d x p");
    auto a = make<float>({d, p});
    bool solved;
    {
        const nb::gil_scoped_release unlocked;
        solved = solve_projection(packed.data(), rhs.data(), static_cast<int>(d),
                                  static_cast<int>(p), beta, a.data());
    }
    return solved ? std::optional(a) : std::nullopt;
}

auto projection_product_of(const Csr& ratings, In1<std::int32_t> rows, In2<float> factors,
                           In2<float> common, Maybe1<float> known, Maybe1<float> known_rows,
                           In2<double> a, int n_threads) {
    require(size(a) == size(common, 1) && size(a, 1) == size(factors, 1), "a must be d x p");
    auto product = make<double>({a.shape(0), a.shape(1)});
    with_projection_problem(ratings, rows, factors, common, known, known_rows, std::nullopt,
                            n_threads, [&](const ProjectionProblem& problem) {
                                projection_product(problem, a.data(), product.data(), n_threads);
                            });
    return product;
}

auto projection_rhs_of(const Csr& ratings, In1<std::int32_t> rows, In2<float> factors,
                       In2<float> common, Maybe1<float> known, Maybe1<float> known_rows,
                       int n_threads) {
    auto rhs = make<double>({common.shape(1), factors.shape(1)});
    with_projection_problem(
        ratings, rows, factors, common, known, known_rows, std::nullopt, n_threads,
        [&](const ProjectionProblem& problem) { projection_rhs(problem, rhs.data(), n_threads); });
    return rhs;
}

auto common_space(In2<float> factors, MaybeMatrix projection, In1<std::int32_t> rows,
                  nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> out,
                  int n_threads) {
    const std::int64_t d = size(out, 1);
    require(size(factors) == size(rows), "factors needs one row for every listed row");
    if (projection)
        require(size(*projection) == d && size(*projection, 1) == size(factors, 1),
                "projection must be d x p");
    else
        require(size(factors, 1) <= d, "factors are wider than the common space");
    const Rows list = check_rows(rows, size(out));
    const nb::gil_scoped_release unlocked;
    to_common(matrix(factors), projection ? projection->data() : nullptr, list, out.data(), d,
              threads(n_threads));
}

auto predict(In2<float> left, In2<float> right, In1<std::int32_t> left_rows,
             In1<std::int32_t> right_rows, int n_threads) {
    require(size(left, 1) == size(right, 1), "left and right differ in width");
    require(size(left_rows) == size(right_rows), "left_rows and right_rows differ in length");
    const auto good = [&](const In1<std::int32_t>& rows, std::int64_t limit) {
        for (std::int64_t i = 0; i < size(rows); ++i)
            if (rows.data()[i] < -1 || rows.data()[i] >= limit) return false;
        return true;
    };
    require(good(left_rows, size(left)) && good(right_rows, size(right)), "a row is out of bounds");
    auto out = make<float>({left_rows.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        predict_pairs(matrix(left), matrix(right), left_rows.data(), right_rows.data(),
                      size(left_rows), out.data(), threads(n_threads));
    }
    return out;
}

auto grid(In2<float> left, In2<float> right, int n_threads) {
    require(size(left, 1) == size(right, 1), "left and right differ in width");
    auto out = make<float>({left.shape(0), right.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        predict_grid(matrix(left), matrix(right), out.data(), threads(n_threads));
    }
    return out;
}

auto top_k_of(In2<float> queries, In2<float> items, std::int64_t k, In1<std::int64_t> indptr,
              In1<std::int32_t> left_out, int n_threads) {
    require(size(queries, 1) == size(items, 1), "queries and items differ in width");
    require(k >= 1, "k must be at least 1");
    require(size(indptr) == size(queries) + 1, "left_out needs one row for every query");
    check_indptr(indptr, size(left_out));
    require(all_below(left_out.data(), size(left_out), size(items)), "an item is out of bounds");
    for (std::int64_t q = 0; q < size(queries); ++q)
        require(std::is_sorted(left_out.data() + indptr.data()[q],
                               left_out.data() + indptr.data()[q + 1]),
                "the items left out must ascend");
    auto ids = make<std::int32_t>({queries.shape(0), static_cast<std::size_t>(k)});
    auto scores = make<float>({queries.shape(0), static_cast<std::size_t>(k)});
    {
        const nb::gil_scoped_release unlocked;
        top_k(matrix(queries), matrix(items), k, indptr.data(), left_out.data(), ids.data(),
              scores.data(), threads(n_threads));
    }
    return std::make_tuple(ids, scores);
}

auto uniform_of(std::uint64_t seed, std::uint64_t stream, In1<std::uint64_t> keys, std::size_t p,
                float low, float high, int n_threads) {
    auto out = make<float>({keys.shape(0), p});
    const nb::gil_scoped_release unlocked;
    uniform(seed, stream, keys.data(), size(keys), static_cast<std::int64_t>(p), low, high,
            out.data(), threads(n_threads));
    return out;
}

auto hash_strings_of(In1<std::uint8_t> text, In1<std::int64_t> offsets) {
    check_indptr(offsets, size(text));
    auto out = make<std::uint64_t>({offsets.shape(0) - 1});
    hash_strings(text.data(), offsets.data(), size(offsets) - 1, out.data());
    return out;
}

/// An array that is taken as it is: another type or layout is an error, not a silent copy that
/// would wrap large indices round, or keep what was meant for the caller's `out`.
auto array(const char* name) { return nb::arg(name).noconvert(); }
auto maybe_array(const char* name) { return array(name).none(); }

}  // namespace

NB_MODULE(MIXEDALS_MODULE, m) {
    nb::class_<Csr>(m, "Csr")
        .def(nb::init<In1<std::int64_t>, In1<std::int32_t>, In1<float>, std::int64_t,
                      Maybe1<float>>(),
             array("indptr"), array("indices"), array("values"), nb::arg("n_columns"),
             array("weights") = nb::none())
        .def("transposed", &Csr::transposed, nb::arg("n_threads"))
        .def_prop_ro("n_rows", &Csr::n_rows)
        .def_prop_ro("n_columns", &Csr::n_columns)
        .def_prop_ro("nnz", &Csr::nnz)
        .def_prop_ro("indptr", &Csr::indptr, nb::rv_policy::automatic)
        .def_prop_ro("indices", &Csr::indices, nb::rv_policy::automatic)
        .def_prop_ro("values", &Csr::values, nb::rv_policy::automatic)
        .def_prop_ro("weights", &Csr::weights, nb::rv_policy::automatic);
    m.def("cpu_level", &cpu_level);
    m.def(
        "encode_integers", [](In1<std::int32_t> ids, int n) { return encode(ids, n); },
        array("ids"), nb::arg("n_threads"));
    m.def(
        "encode_integers", [](In1<std::int64_t> ids, int n) { return encode(ids, n); },
        array("ids"), nb::arg("n_threads"));
    m.def("order_of_pairs", &order_of_pairs, array("rows"), array("columns"), nb::arg("n_rows"),
          nb::arg("n_columns"), nb::arg("n_threads"));
    const auto def_take = [&](auto take_as) {
        m.def("take", take_as, array("values"), array("positions"), nb::arg("n_threads"));
    };
    def_take(&take_of<float, std::uint32_t>);
    def_take(&take_of<float, std::int64_t>);
    def_take(&take_of<std::int32_t, std::uint32_t>);
    def_take(&take_of<std::int32_t, std::int64_t>);
    def_take(&take_of<std::int64_t, std::uint32_t>);
    def_take(&take_of<std::int64_t, std::int64_t>);
    m.def("solve_rows", &solve_rows_of, nb::arg("ratings"), array("rows"), array("common"),
          maybe_array("known"), maybe_array("projection"), nb::arg("width"), nb::arg("with_bias"),
          array("ridge"), nb::arg("n_threads"));
    m.def("projection_sums", &projection_sums_of, nb::arg("ratings"), array("rows"),
          array("factors"), array("common"), maybe_array("known"), maybe_array("known_rows"),
          nb::arg("sample").none(), nb::arg("n_threads"));
    m.def("solve_projection", &solve_projection_of, array("packed"), array("rhs"), nb::arg("beta"));
    m.def("projection_product", &projection_product_of, nb::arg("ratings"), array("rows"),
          array("factors"), array("common"), maybe_array("known"), maybe_array("known_rows"),
          array("a"), nb::arg("n_threads"));
    m.def("projection_rhs", &projection_rhs_of, nb::arg("ratings"), array("rows"), array("factors"),
          array("common"), maybe_array("known"), maybe_array("known_rows"), nb::arg("n_threads"));
    m.def("common_space", &common_space, array("factors"), maybe_array("projection"), array("rows"),
          array("out"), nb::arg("n_threads"));
    m.def("predict_pairs", &predict, array("left"), array("right"), array("left_rows"),
          array("right_rows"), nb::arg("n_threads"));
    m.def("predict_grid", &grid, array("left"), array("right"), nb::arg("n_threads"));
    m.def("top_k", &top_k_of, array("queries"), array("items"), nb::arg("k"),
          array("left_out_indptr"), array("left_out"), nb::arg("n_threads"));
    m.def("uniform", &uniform_of, nb::arg("seed"), nb::arg("stream"), array("keys"), nb::arg("p"),
          nb::arg("low"), nb::arg("high"), nb::arg("n_threads"));
    m.def("hash_strings", &hash_strings_of, array("text"), array("offsets"));
}
