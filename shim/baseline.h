// What a new C++ library has and old systems have not: hooks that are built on one machine and carried to others bring it.
#ifndef HOTSPAN_BASELINE_H
#define HOTSPAN_BASELINE_H

#ifdef HOTSPAN_CARRIED

#include <new>

// Tells shared pointers that they may count without atomics (glibc 2.32). They may not: torch has threads.
extern "C" {
char __libc_single_threaded = 0;
}

// A template of the library calls it where a length overflows (libstdc++ of GCC 11).
namespace std {
[[noreturn]] void __throw_bad_array_new_length() {
  throw bad_array_new_length();
}
} // namespace std

#endif

#endif
