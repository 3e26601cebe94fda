/*
 * The engine's memory: one mapping whose pages the kernel makes at once, handed out from its front; what does not fit
 * is malloc's. Most calls need no more, and with it none of malloc's system calls and none of the page faults: a
 * fourth of a millisecond. Only its last block can grow or be given back; the others stay until the process ends.
 */
#include "arena.h"

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As much as most calls need: what is not used costs, too. */
#define ARENA_SIZE ((size_t)768 << 10)

/* A sanitizer is told what no block holds: the heads of blocks, what was freed, what was not handed out yet. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define READS_HEADS __attribute__((no_sanitize_address))
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define READS_HEADS
#endif

static uint8_t *arena, *next, *end;

struct Block {
  size_t size;
  _Alignas(16) uint8_t bytes[];
};

static bool is_in_arena(const void *bytes) {
  return (uintptr_t)bytes >= (uintptr_t)arena && (uintptr_t)bytes < (uintptr_t)end;
}

static struct Block *block_of(const void *bytes) {
  return (struct Block *)((uint8_t *)bytes - offsetof(struct Block, bytes));
}

/* Whether a block that begins there has room for so many bytes; then it is the last. */
READS_HEADS static bool place(struct Block *block, size_t size) {
  size_t rounded = (size + 15) & ~(size_t)15;
  if (size > ARENA_SIZE || sizeof *block + rounded > (size_t)(end - (uint8_t *)block)) return false;
  block->size = rounded;
  next = block->bytes + rounded;
  ASAN_UNPOISON_MEMORY_REGION(block->bytes, rounded);
  return true;
}

static void *arena_malloc(void *opaque, size_t size) {
  (void)opaque;
  struct Block *block = (struct Block *)next;
  return place(block, size) ? block->bytes : malloc(size);
}

static void *arena_calloc(void *opaque, size_t count, size_t size) {
  (void)opaque;
  size_t total;
  struct Block *block = (struct Block *)next;
  if (__builtin_mul_overflow(count, size, &total)) return NULL;
  return place(block, total) ? memset(block->bytes, 0, total) : calloc(count, size);
}

READS_HEADS static void arena_free(void *opaque, void *bytes) {
  (void)opaque;
  if (!is_in_arena(bytes)) {
    free(bytes);
    return;
  }
  struct Block *block = block_of(bytes);
  ASAN_POISON_MEMORY_REGION(bytes, block->size);
  if (block->bytes + block->size == next) next = (uint8_t *)block;
}

READS_HEADS static void *arena_realloc(void *opaque, void *bytes, size_t size) {
  if (!is_in_arena(bytes)) return bytes == NULL ? arena_malloc(opaque, size) : realloc(bytes, size);
  struct Block *block = block_of(bytes);
  if (size <= block->size || (block->bytes + block->size == next && place(block, size))) return bytes;
  void *moved = arena_malloc(opaque, size);
  if (moved == NULL) return NULL;
  memcpy(moved, bytes, block->size);
  ASAN_POISON_MEMORY_REGION(bytes, block->size);
  return moved;
}

READS_HEADS static size_t arena_usable_size(const void *bytes) {
  return is_in_arena(bytes) ? block_of(bytes)->size : malloc_usable_size((void *)bytes);
}

/*
 * The same, counted: the engine makes an exception of what exceeds its own limit, and a program that catches every
 * error would go on without memory.
 */
static size_t held, allowed = SIZE_MAX;

void limit_memory(size_t bytes) {
  allowed = bytes;
}

static void *counted(void *bytes) {
  if (bytes != NULL && (held += arena_usable_size(bytes)) <= allowed) return bytes;
  dprintf(2, "linkerd-cni: error: out of memory: this program may take %zu MiB\n", allowed >> 20);
  _exit(1);
}

static void *counted_malloc(void *opaque, size_t size) {
  return counted(arena_malloc(opaque, size));
}

static void *counted_calloc(void *opaque, size_t count, size_t size) {
  return counted(arena_calloc(opaque, count, size));
}

static void counted_free(void *opaque, void *bytes) {
  if (bytes != NULL) held -= arena_usable_size(bytes);
  arena_free(opaque, bytes);
}

static void *counted_realloc(void *opaque, void *bytes, size_t size) {
  if (bytes != NULL) held -= arena_usable_size(bytes);
  return counted(arena_realloc(opaque, bytes, size));
}

JSRuntime *new_runtime(bool is_counted) {
  static const JSMallocFunctions
      plain = {arena_calloc, arena_malloc, arena_free, arena_realloc, arena_usable_size},
      counting = {counted_calloc, counted_malloc, counted_free, counted_realloc, arena_usable_size};
  const JSMallocFunctions *functions = is_counted ? &counting : &plain;
  void *made = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (made == MAP_FAILED) return JS_NewRuntime2(functions, NULL);
  arena = next = made, end = arena + ARENA_SIZE;
  ASAN_POISON_MEMORY_REGION(arena, ARENA_SIZE);
  return JS_NewRuntime2(functions, NULL);
}
