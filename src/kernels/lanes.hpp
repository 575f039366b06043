// Vectors of floats that stay in registers, in the width of the instruction set compiled for.
#pragma once

#include <cstddef>
#include <cstring>

namespace mixedals {

#if defined(__AVX512F__)
inline constexpr int native_lanes = 16;
#elif defined(__AVX__)
inline constexpr int native_lanes = 8;
#else
inline constexpr int native_lanes = 4;
#endif

#if defined(__GNUC__)
template <int N>
struct VectorOf {
    typedef float type __attribute__((vector_size(N * sizeof(float))));
};
template <int N>
using Vector = typename VectorOf<N>::type;
#else
template <int N>
struct alignas(N * sizeof(float)) Vector {
    float lane[N];
    float operator[](int i) const { return lane[i]; }
    float& operator[](int i) { return lane[i]; }
    friend Vector operator*(float a, const Vector& b) {
        Vector out;
        for (int i = 0; i < N; ++i) out.lane[i] = a * b.lane[i];
        return out;
    }
    friend Vector operator*(const Vector& a, const Vector& b) {
        Vector out;
        for (int i = 0; i < N; ++i) out.lane[i] = a.lane[i] * b.lane[i];
        return out;
    }
    Vector& operator+=(const Vector& b) {
        for (int i = 0; i < N; ++i) lane[i] += b.lane[i];
        return *this;
    }
    Vector& operator-=(const Vector& b) {
        for (int i = 0; i < N; ++i) lane[i] -= b.lane[i];
        return *this;
    }
};
#endif

/// Asks for the cache line at `address`, which will be read soon.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

/// L floats in as few native vectors as hold them.
template <int L>
struct Lanes {
    static constexpr int width = L < native_lanes ? L : native_lanes;
    static constexpr int parts = L / width;
    static_assert(parts * width == L);

    Vector<width> part[parts];

    static Lanes load(const float* from) {
        Lanes out;
        std::memcpy(out.part, from, sizeof(out.part));
        return out;
    }
    void store(float* to) const { std::memcpy(to, part, sizeof(part)); }

    /// this += a * x
    void add(float a, const Lanes& x) {
        for (int i = 0; i < parts; ++i) part[i] += a * x.part[i];
    }
    friend Lanes operator*(float a, const Lanes& x) {
        Lanes out;
        for (int i = 0; i < parts; ++i) out.part[i] = a * x.part[i];
        return out;
    }
};

}  // namespace mixedals
