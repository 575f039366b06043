// Many systems solved together, one a vector lane: no step waits for the one before it in its own
// system, as the pivots of a single factorisation do.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "large.hpp"

namespace mixedals {

/// Solves systems of any sizes together. What comes out for one doesn't depend on the others.
class Together {
  public:
    static constexpr int most = native_lanes;

    /// Systems of more unknowns don't fit the second-level cache and are quicker alone.
    static constexpr std::int64_t largest = 128;

    /// Solves the first `count` systems.
    void solve(const std::array<System, most>& systems, const std::array<float, most>& ridge,
               int count);

    /// False where a pivot of that system is lost in rounding.
    bool solved(int lane) const { return good_[lane] != 0; }

    /// The unknowns of that system.
    const float* v(int lane) const { return v_.data() + lane * stride_; }

  private:
    float* panel(std::int64_t block);
    void interleave(const std::array<System, most>& systems, const std::array<float, most>& ridge,
                    int count);
    void factorise_block(std::int64_t block);
    void solve_upper();

    std::int64_t blocks_ = 0, stride_ = 0;
    std::array<std::int64_t, most> sizes_{};
    std::array<int, most> good_{};
    // Numbers of a place in all systems are side by side in a vector. The matrix and its factor are
    // in panels of `width` columns, each with its rows down to the diagonal.
    std::vector<float> panels_, y_, inverse_, v_;
};

}  // namespace mixedals
