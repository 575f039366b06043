// Predictions and their best.
#include <algorithm>
#include <cstdint>
#include <tuple>

#include "../score.hpp"
#include "border.hpp"

namespace mixedals {
namespace {

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

}  // namespace

void bind_scores(nb::module_& m) {
    m.def("predict_pairs", &predict, array("left"), array("right"), array("left_rows"),
          array("right_rows"), nb::arg("n_threads"));
    m.def("predict_grid", &grid, array("left"), array("right"), nb::arg("n_threads"));
    m.def("top_k", &top_k_of, array("queries"), array("items"), nb::arg("k"),
          array("left_out_indptr"), array("left_out"), nb::arg("n_threads"));
}

}  // namespace mixedals
