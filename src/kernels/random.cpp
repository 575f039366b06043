#include "random.hpp"

#include "threads.hpp"

namespace mixedals {

void uniform(std::uint64_t seed, std::uint64_t stream, const std::uint64_t* keys, std::int64_t n,
             std::int64_t p, float low, float high, float* out, int n_threads) {
    const std::uint64_t start = stream_of(seed, stream);
    // In double precision the product is exact, so that a fused multiply-add changes no bit.
    const double least = low, range = static_cast<double>(high) - least;
    parallel_spans(n, 4096, n_threads, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
            const std::uint64_t of_row = mix(start ^ keys[row]);
            for (std::int64_t c = 0; c < p; ++c) {
                const auto bits = mix(of_row ^ static_cast<std::uint64_t>(c)) >> 40;
                out[row * p + c] =
                    static_cast<float>(least + range * (static_cast<double>(bits) * 0x1p-24));
            }
        }
    });
}

void hash_strings(const std::uint8_t* bytes, const std::int64_t* offsets, std::int64_t n,
                  std::uint64_t* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        std::uint64_t hash = 0xcbf29ce484222325;
        for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at)
            hash = (hash ^ bytes[at]) * 0x100000001b3;
        out[i] = hash;
    }
}

}  // namespace mixedals
