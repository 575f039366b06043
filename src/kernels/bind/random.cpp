// Numbers by hashing.
#include "../random.hpp"

#include <cstdint>

#include "border.hpp"

namespace mixedals {
namespace {

auto uniform_of(std::uint64_t seed, std::uint64_t stream, In1<std::uint64_t> keys, std::size_t p,
                float low, float high, int n_threads) {
    auto out = make<float>({keys.shape(0), p});
    const nb::gil_scoped_release unlocked;
    uniform(seed, stream, keys.data(), size(keys), static_cast<std::int64_t>(p), low, high,
            out.data(), threads(n_threads));
    return out;
}

auto hash_strings_of(In1<std::uint8_t> text, In1<std::int64_t> offsets) {
    require(size(offsets) >= 1, "offsets is empty");
    auto out = make<std::uint64_t>({offsets.shape(0) - 1});
    const nb::gil_scoped_release unlocked;
    check_indptr(offsets, size(text));
    hash_strings(text.data(), offsets.data(), size(offsets) - 1, out.data());
    return out;
}

}  // namespace

void bind_random(nb::module_& m) {
    m.def("uniform", &uniform_of, nb::arg("seed"), nb::arg("stream"), array("keys"), nb::arg("p"),
          nb::arg("low"), nb::arg("high"), nb::arg("n_threads"));
    m.def("hash_strings", &hash_strings_of, array("text"), array("offsets"));
}

}  // namespace mixedals
