/*
 * The memory of engine and TLS: one mapping whose pages the kernel populates at once, allocated from its start. Only its
 * last block can grow or be freed; malloc serves what does not fit. Most calls fit, and save malloc's system calls and
 * all page faults: a fourth of a millisecond, and a whole one if there is a TLS handshake.
 */
#include "arena.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Enough for every call that asks the API server. Less than a huge page, which would stay mostly unused. */
#define ARENA_SIZE ((size_t)1536 << 10)
/* What the kernel populates at once: enough for most other calls. Unused pages cost time, too. */
#define READY_SIZE ((size_t)768 << 10)
/* Blocks are aligned to it, and their size stands so far before them. */
#define UNIT ((size_t)16)

static uint8_t *next, *end;
static uintptr_t begin;
static size_t held, allowed = SIZE_MAX;

void limit_memory(size_t bytes) {
  allowed = bytes;
}

static bool is_in_arena(const void *bytes) {
  return (uintptr_t)bytes - begin < ARENA_SIZE;
}

static size_t *size_of(const void *block) {
  return (size_t *)((uint8_t *)block - UNIT);
}

static size_t usable_size(const void *bytes) {
  return is_in_arena(bytes) ? *size_of(bytes) : malloc_usable_size((void *)bytes);
}

/*
 * Counts a block. The engine throws when its own limit is exceeded, and a program that catches every error would go on
 * without memory.
 */
static void *counted(void *bytes) {
  if (bytes != NULL) held += usable_size(bytes);
  if (allowed == SIZE_MAX || (bytes != NULL && held <= allowed)) return bytes;
  dprintf(2, "linkerd-cni: error: out of memory: this program may take %zu MiB\n", allowed >> 20);
  _exit(1);
}

/* Makes this the last block if there is room for so many bytes; NULL otherwise. */
static void *place(uint8_t *block, size_t size) {
  size_t rounded = (size + UNIT - 1) & ~(UNIT - 1);
  if (size > ARENA_SIZE || (size_t)(end - next) < UNIT || rounded > (size_t)(end - block)) return NULL;
  *size_of(block) = rounded;
  next = block + rounded;
  return block;
}

static void *arena_malloc(void *opaque, size_t size) {
  (void)opaque;
  void *bytes = place(next + UNIT, size);
  return counted(bytes != NULL ? bytes : malloc(size));
}

static void *arena_calloc(void *opaque, size_t count, size_t size) {
  size_t total;
  if (__builtin_mul_overflow(count, size, &total)) return NULL;
  void *bytes = arena_malloc(opaque, total);
  return bytes == NULL ? NULL : memset(bytes, 0, total);
}

static void arena_free(void *opaque, void *bytes) {
  (void)opaque;
  if (bytes == NULL) return;
  size_t size = usable_size(bytes);
  held -= size;
  if (!is_in_arena(bytes)) free(bytes);
  else if ((uint8_t *)bytes + size == next) next = (uint8_t *)size_of(bytes);
}

static void *arena_realloc(void *opaque, void *bytes, size_t size) {
  if (bytes == NULL) return arena_malloc(opaque, size);
  size_t old = usable_size(bytes);
  if (!is_in_arena(bytes)) {
    held -= old;
    return counted(realloc(bytes, size));
  }
  if (size <= old) return bytes;
  if ((uint8_t *)bytes + old == next && place(bytes, size) != NULL) {
    held -= old;
    return counted(bytes);
  }
  void *moved = arena_malloc(opaque, size);
  if (moved == NULL) return NULL;
  memcpy(moved, bytes, old);
  arena_free(opaque, bytes);
  return moved;
}

/* Memory for TLS. */
void *tls_calloc(size_t count, size_t size) {
  return arena_calloc(NULL, count, size);
}

void tls_free(void *bytes) {
  arena_free(NULL, bytes);
}

JSRuntime *new_runtime(void) {
  static const JSMallocFunctions functions = {arena_calloc, arena_malloc, arena_free, arena_realloc, usable_size};
#ifndef __SANITIZE_ADDRESS__ /* which watches the blocks of malloc */
  const int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
  void *made = mmap(NULL, ARENA_SIZE, access, kind, -1, 0);
  if (made != MAP_FAILED && mmap(made, READY_SIZE, access, kind | MAP_POPULATE | MAP_FIXED, -1, 0) != MAP_FAILED)
    begin = (uintptr_t)made, next = made, end = next + ARENA_SIZE;
#endif
  return JS_NewRuntime2(&functions, NULL);
}
