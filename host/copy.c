/*
 * memcpy and memmove for x86-64. musl's begin a string instruction for every size, which takes longer than most copies of
 * the engine and of TLS: the handshake of one connection makes 60,000 copies of 32 bytes.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t half __attribute__((aligned(1), may_alias));
typedef uint32_t quarter __attribute__((aligned(1), may_alias));
typedef long long whole __attribute__((vector_size(16), aligned(1), may_alias));

/** From here on, one string instruction is faster. */
enum { LARGE = 1024 };

/** Keeps the compiler from making a loop a call of the function that it is in. */
#define KEEP __asm__ volatile("" : : : "memory")

/** Up to 32 bytes, all read before the first is written. */
static inline void copy_small(char *to, const char *from, size_t size) {
  if (size >= 16) {
    whole first = *(const whole *)from, last = *(const whole *)(from + size - 16);
    *(whole *)to = first;
    *(whole *)(to + size - 16) = last;
  } else if (size >= 8) {
    half first = *(const half *)from, last = *(const half *)(from + size - 8);
    *(half *)to = first;
    *(half *)(to + size - 8) = last;
  } else if (size >= 4) {
    quarter first = *(const quarter *)from, last = *(const quarter *)(from + size - 4);
    *(quarter *)to = first;
    *(quarter *)(to + size - 4) = last;
  } else if (size > 0) {
    char first = from[0], middle = from[size / 2], last = from[size - 1];
    to[0] = first;
    to[size / 2] = middle;
    to[size - 1] = last;
  }
}

static inline void *copy(char *to, const char *from, size_t size) {
  void *target = to;
  if (size <= 32) {
    copy_small(to, from, size);
  } else if ((uintptr_t)to - (uintptr_t)from >= size) {
    /* Upwards: no byte is written before it is read. */
    if (size >= LARGE) {
      __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
      return target;
    }
    for (; size > 32; size -= 16, to += 16, from += 16) {
      *(whole *)to = *(const whole *)from;
      KEEP;
    }
    copy_small(to, from, size);
  } else {
    for (; size > 32; size -= 16) {
      *(whole *)(to + size - 16) = *(const whole *)(from + size - 16);
      KEEP;
    }
    copy_small(to, from, size);
  }
  return target;
}

void *memmove(void *to, const void *from, size_t size) { return copy(to, from, size); }
void *memcpy(void *restrict to, const void *restrict from, size_t size) { return copy(to, from, size); }
#endif
