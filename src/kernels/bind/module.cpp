// The extension module of one instruction-set level.
#include "../cpu.hpp"
#include "border.hpp"

NB_MODULE(MIXEDALS_MODULE, m) {
    m.def("cpu_level", &mixedals::cpu_level);
    mixedals::bind_ratings(m);
    mixedals::bind_updates(m);
    mixedals::bind_scores(m);
    mixedals::bind_random(m);
}
