// From ratings in any order to compressed rows, by counting.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "ratings.hpp"

namespace mixedals {

/// Arrays of ratings in compressed rows; `weights` is empty where every weight is 1.
struct RatingArrays {
    Buffer<std::int64_t> indptr;
    Buffer<std::int32_t> indices;
    Buffer<float> values, weights;
};

/// The same ratings in rows that are the columns of `ratings`, each in the order of its rows.
RatingArrays transpose(const Ratings& ratings, int n_threads);

/// The positions that put ratings into rows and, in a row, by column; equal pairs stay in their
/// order. `Position` must hold n. `rows` and `columns` must be checked. `indptr` gets n_rows + 1.
template <class Position>
void sort_pairs(const std::int32_t* rows, const std::int32_t* columns, std::int64_t n,
                std::int64_t n_rows, std::int64_t n_columns, std::int64_t* indptr, Position* order,
                int n_threads);

/// out[i] = from[positions[i]]. `positions` must be checked.
template <class Value, class Position>
void take(const Value* from, const Position* positions, std::int64_t n, Value* out, int n_threads);

/// Codes of integer ids: codes[i] is the position of ids[i] in the sorted distinct ids.
/// False, and nothing done, where the ids span so wide a range that a table of it isn't worth it.
template <class Id>
bool encode_integers(const Id* ids, std::int64_t n, std::vector<Id>& vocabulary,
                     std::int32_t* codes, int n_threads);

}  // namespace mixedals
