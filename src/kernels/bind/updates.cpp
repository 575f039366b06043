// The closed-form updates of a tier.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "../features.hpp"
#include "../leave_one_out.hpp"
#include "../projection.hpp"
#include "../ridge.hpp"
#include "csr.hpp"

namespace mixedals {
namespace {

auto solve_rows_of(const Csr& ratings, In1<std::int32_t> rows, In2<float> common,
                   Maybe1<float> known, MaybeMatrix projection, int width, bool with_bias,
                   In1<float> ridge, int n_threads) {
    const Ratings view = ratings.ratings();
    require(size(common) == view.n_columns, "common needs one row for every column of ratings");
    require(width >= 0 && width <= size(common, 1), "width must be between 0 and d");
    require(width > 0 || with_bias, "width 0 leaves nothing but a bias to solve for");
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

auto leave_one_out_of(const Csr& ratings, In1<std::int32_t> rows, In2<float> features,
                      Maybe1<float> known, In1<float> ridge, In1<std::int32_t> sizes,
                      int n_threads) {
    const Ratings view = ratings.ratings();
    require(size(features) == view.n_columns, "features needs one row for every column of ratings");
    require(size(features, 1) >= 1, "there must be at least one feature");
    const float* known_data = data_of(known, view.n_columns, "known needs one number a column");
    require(size(ridge) == size(rows), "ridge needs one number for every listed row");
    const Rows list = check_rows(rows, view.n_rows);
    require(all_below(sizes.data(), size(sizes), size(features, 1) + 1) &&
                std::is_sorted(sizes.data(), sizes.data() + size(sizes)),
            "sizes must rise and be at most the number of features");
    auto errors = make<double>({rows.shape(0), sizes.shape(0)});
    {
        const nb::gil_scoped_release unlocked;
        const auto width = static_cast<int>(size(features, 1));
        const Features padded =
            make_features(matrix(features), known_data, nullptr, width, false, threads(n_threads));
        leave_one_out(view, list, padded, ridge.data(), sizes.data(), size(sizes), errors.data(),
                      n_threads);
    }
    return errors;
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

}  // namespace

void bind_updates(nb::module_& m) {
    m.def("solve_rows", &solve_rows_of, nb::arg("ratings"), array("rows"), array("common"),
          maybe_array("known"), maybe_array("projection"), nb::arg("width"), nb::arg("with_bias"),
          array("ridge"), nb::arg("n_threads"));
    m.def("leave_one_out", &leave_one_out_of, nb::arg("ratings"), array("rows"), array("features"),
          maybe_array("known"), array("ridge"), array("sizes"), nb::arg("n_threads"));
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
}

}  // namespace mixedals
