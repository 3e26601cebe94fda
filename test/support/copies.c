/* Compares the host's memcpy and memmove with copies byte by byte, for every size and distance that is a case of its own. */
#define memcpy host_memcpy
#define memmove host_memmove
#include "../../host/copy.c"
#undef memcpy
#undef memmove
#include <stdio.h>

enum { BYTES = 4096, FROM = 2048, FAR = 2000 };

static unsigned char found[BYTES], wanted[BYTES];
static unsigned long copies;

/** One copy from the middle to a distance, with every byte around it compared, too. */
static int differs(void *(*copy)(void *, const void *, size_t), ptrdiff_t distance, size_t size) {
  for (size_t at = 0; at < BYTES; at++) found[at] = wanted[at] = (unsigned char)(at * 167 + (at >> 8) * 31);
  unsigned char *to = wanted + FROM + distance, *from = wanted + FROM;
  if (distance <= 0)
    for (size_t at = 0; at < size; at++) ((volatile unsigned char *)to)[at] = from[at];
  else
    for (size_t at = size; at > 0; at--) ((volatile unsigned char *)to)[at - 1] = from[at - 1];
  copies++;
  if (copy(found + FROM + distance, found + FROM, size) == found + FROM + distance) {
    size_t at = 0;
    while (at < BYTES && found[at] == wanted[at]) at++;
    if (at == BYTES) return 0;
  }
  printf("differs: %zu bytes to a distance of %td\n", size, distance);
  return 1;
}

static void *disjoint(void *to, const void *from, size_t size) { return host_memcpy(to, from, size); }

int main(void) {
  for (size_t size = 0; size <= 1100; size = size == 200 ? 1000 : size + 1) {
    for (ptrdiff_t distance = -70; distance <= 70; distance++)
      if (differs(host_memmove, distance, size)) return 1;
    for (ptrdiff_t shift = 0; shift < 16; shift++)
      if (differs(disjoint, shift - FAR, size)) return 1;
  }
  printf("%lu copies\n", copies);
  return 0;
}
