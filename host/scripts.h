/* The scripts that the build embeds as bytecode. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Script {
  const char *name;
  const uint8_t *bytecode;
  size_t size;
};

/* An entry without a name ends each list. The first program is the CNI plugin; programs load scripts by name. */
extern const struct Script programs[];
extern const struct Script scripts[];
