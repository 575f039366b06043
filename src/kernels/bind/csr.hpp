// Checked ratings, as Python holds them.
#pragma once

#include <cstdint>

#include "../group.hpp"
#include "border.hpp"

namespace mixedals {

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
        const nb::gil_scoped_release unlocked;
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

inline Rows check_rows(const In1<std::int32_t>& rows, std::int64_t n_rows) {
    require(all_below(rows.data(), size(rows), n_rows), "a row is out of bounds");
    return {rows.data(), size(rows)};
}

}  // namespace mixedals
