// Ratings into compressed rows.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "csr.hpp"

namespace mixedals {
namespace {

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

}  // namespace

void bind_ratings(nb::module_& m) {
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
}

}  // namespace mixedals
