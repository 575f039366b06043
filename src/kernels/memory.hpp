// Large arrays, unset, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mixedals {

struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
};

/// n numbers that nobody has set yet.
///
/// A large array costs a page fault for every page when it is first written, and gathering from it
/// misses the translation cache: with pages of 2 MiB instead of 4 KiB both hardly happen.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t n) : size_(n), memory_(allocate(n)) {}

    T* data() { return memory_.get(); }
    const T* data() const { return memory_.get(); }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return memory_[i]; }
    const T& operator[](std::size_t i) const { return memory_[i]; }

    /// Gives the memory away, to be freed by std::free.
    T* release() { return memory_.release(); }

  private:
    static T* allocate(std::size_t n) {
        constexpr std::size_t huge_page = std::size_t{1} << 21;
        if (n > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
        const std::size_t bytes = n * sizeof(T);
        void* memory = nullptr;
#if defined(__linux__)
        if (bytes >= huge_page) {
            memory = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
            if (memory) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: it may be refused
        }
#endif
        if (!memory) memory = std::malloc(bytes > 0 ? bytes : 1);
        if (!memory) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }

    std::size_t size_ = 0;
    std::unique_ptr<T[], Free> memory_;
};

}  // namespace mixedals
