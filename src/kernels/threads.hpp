// Threads over a shared counter: no pool, so nothing outlives a call and a fork is safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace mixedals {

/// Calls `work(task)` for every task in [0, n_tasks), on at most `n_threads` threads.
/// `make_worker()` is called once on each thread and returns `work`, so that a worker may own
/// scratch memory. The first exception stops the others and is thrown again here.
template <class MakeWorker>
void parallel(std::int64_t n_tasks, int n_threads, MakeWorker make_worker) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr error;
    std::mutex error_guard;
    const auto run = [&] {
        try {
            auto work = make_worker();
            for (std::int64_t task; (task = next.fetch_add(1)) < n_tasks;) work(task);
        } catch (...) {
            next = n_tasks;
            const std::lock_guard lock(error_guard);
            if (!error) error = std::current_exception();
        }
    };
    const auto helpers =
        std::clamp<std::int64_t>(std::min<std::int64_t>(n_threads, n_tasks) - 1, 0, 1023);
    std::vector<std::jthread> threads;
    try {
        for (std::int64_t i = 0; i < helpers; ++i) threads.emplace_back(run);
    } catch (const std::system_error&) {
        // The system gives no more of them: those there are do all the work.
    }
    run();
    threads.clear();  // joins
    if (error) std::rethrow_exception(error);
}

/// `work(first, last)` over [0, n) in spans of `grain`; the spans don't depend on `n_threads`.
template <class Work>
void parallel_spans(std::int64_t n, std::int64_t grain, int n_threads, Work work) {
    parallel((n + grain - 1) / grain, n_threads, [&] {
        return [&](std::int64_t task) { work(task * grain, std::min(n, (task + 1) * grain)); };
    });
}

}  // namespace mixedals
