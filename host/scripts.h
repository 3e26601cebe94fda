/* The scripts that the build embeds, as bytecode. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Script {
  const char *name;
  const uint8_t *bytecode;
  size_t size;
};

/* Both ended by one without a name. The first program is the CNI plugin; programs load scripts by their names. */
extern const struct Script programs[];
extern const struct Script scripts[];
