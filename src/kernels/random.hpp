// Random numbers that are a function of what they are for, and of nothing else.
#pragma once

#include <cstdint>

namespace mixedals {

/// The finaliser of SplitMix64: a bijection of 64 bits in which every input bit moves every output.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// Hash of a seed and a stream: what `mix(. ^ key)` then `mix(. ^ component)` start from.
constexpr std::uint64_t stream_of(std::uint64_t seed, std::uint64_t stream) {
    return mix(mix(seed) ^ stream);
}

/// out[row * p + c] uniform in [low, high), from (seed, stream, keys[row], c) alone.
void uniform(std::uint64_t seed, std::uint64_t stream, const std::uint64_t* keys, std::int64_t n,
             std::int64_t p, float low, float high, float* out, int n_threads);

/// out[i] = FNV-1a (64 bits) of the bytes [offsets[i], offsets[i + 1]).
void hash_strings(const std::uint8_t* bytes, const std::int64_t* offsets, std::int64_t n,
                  std::uint64_t* out);

}  // namespace mixedals
