/*
 * The memory of engine and TLS: one mapping whose pages the kernel populates at once, allocated from its start. malloc
 * serves what does not fit. Most calls fit, and save malloc's system calls and all page faults: a fourth of a
 * millisecond, and a whole one if there is a TLS handshake. Only the last block can grow. A block that was freed is
 * allocated again for the same size.
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

/* Enough for every call that asks the API server. Less than a huge page, which would stay mostly unused. */
#define ARENA_SIZE ((size_t)1536 << 10)
/* What the kernel populates at once: enough for most other calls. Unused pages cost time, too. */
#define READY_SIZE ((size_t)768 << 10)

/* Tells a sanitizer what is not in use: the headers of blocks, and memory that was freed or not yet allocated. */
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
  /* While the block is free: the next free block of its size. */
  struct Block *other;
  _Alignas(16) uint8_t bytes[];
};

/* Free blocks by size: in steps of 16 bytes at first, then of 256; larger ones are not reused. */
#define SIZES 192
static struct Block *given_back[SIZES];

static size_t rounded(size_t size) {
  return size < 1024 ? (size + 15) & ~(size_t)15 : (size + 255) & ~(size_t)255;
}

static struct Block **others_of(size_t size) {
  size_t at = size < 1024 ? size / 16 : 60 + size / 256;
  return at < SIZES ? &given_back[at] : NULL;
}

static bool is_in_arena(const void *bytes) {
  return (uintptr_t)bytes >= (uintptr_t)arena && (uintptr_t)bytes < (uintptr_t)end;
}

static struct Block *block_of(const void *bytes) {
  return (struct Block *)((uint8_t *)bytes - offsetof(struct Block, bytes));
}

/* Makes this the last block if there is room for so many bytes; false otherwise. */
READS_HEADS static bool place(struct Block *block, size_t size) {
  if (size > ARENA_SIZE || sizeof *block + rounded(size) > (size_t)(end - (uint8_t *)block)) return false;
  block->size = rounded(size);
  next = block->bytes + block->size;
  ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
  return true;
}

/* A block of the arena; NULL if none is free. */
READS_HEADS static void *take(size_t size) {
  struct Block **others = size > ARENA_SIZE ? NULL : others_of(rounded(size)), *block = (struct Block *)next;
  if (others == NULL || *others == NULL) return place(block, size) ? block->bytes : NULL;
  block = *others, *others = block->other;
  ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
  return block->bytes;
}

static void *arena_malloc(void *opaque, size_t size) {
  (void)opaque;
  void *bytes = take(size);
  return bytes != NULL ? bytes : malloc(size);
}

static void *arena_calloc(void *opaque, size_t count, size_t size) {
  (void)opaque;
  size_t total;
  if (__builtin_mul_overflow(count, size, &total)) return NULL;
  void *bytes = take(total);
  return bytes != NULL ? memset(bytes, 0, total) : calloc(count, size);
}

READS_HEADS static void arena_free(void *opaque, void *bytes) {
  (void)opaque;
  if (!is_in_arena(bytes)) {
    free(bytes);
    return;
  }
  struct Block *block = block_of(bytes);
  ASAN_POISON_MEMORY_REGION(bytes, block->size);
  struct Block **others = others_of(block->size);
  if (block->bytes + block->size == next) next = (uint8_t *)block;
  else if (others != NULL) block->other = *others, *others = block;
}

READS_HEADS static void *arena_realloc(void *opaque, void *bytes, size_t size) {
  if (!is_in_arena(bytes)) return bytes == NULL ? arena_malloc(opaque, size) : realloc(bytes, size);
  struct Block *block = block_of(bytes);
  if (size <= block->size || (block->bytes + block->size == next && place(block, size))) return bytes;
  void *moved = arena_malloc(opaque, size);
  if (moved == NULL) return NULL;
  memcpy(moved, bytes, block->size);
  arena_free(opaque, bytes);
  return moved;
}

READS_HEADS static size_t arena_usable_size(const void *bytes) {
  return is_in_arena(bytes) ? block_of(bytes)->size : malloc_usable_size((void *)bytes);
}

/*
 * The same, counted: the engine throws when its own limit is exceeded, and a program that catches every error would
 * go on without memory.
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

static const JSMallocFunctions
    plain = {arena_calloc, arena_malloc, arena_free, arena_realloc, arena_usable_size},
    counting = {counted_calloc, counted_malloc, counted_free, counted_realloc, arena_usable_size};
static const JSMallocFunctions *functions = &plain;

/* Memory for TLS. */
void *tls_calloc(size_t count, size_t size) {
  return functions->js_calloc(NULL, count, size);
}

void tls_free(void *bytes) {
  functions->js_free(NULL, bytes);
}

JSRuntime *new_runtime(bool is_counted) {
  if (is_counted) functions = &counting;
  const int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS;
  void *made = mmap(NULL, ARENA_SIZE, access, kind, -1, 0);
  if (made == MAP_FAILED || mmap(made, READY_SIZE, access, kind | MAP_POPULATE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return JS_NewRuntime2(functions, NULL);
  arena = next = made, end = arena + ARENA_SIZE;
  ASAN_POISON_MEMORY_REGION(arena, ARENA_SIZE);
  return JS_NewRuntime2(functions, NULL);
}
