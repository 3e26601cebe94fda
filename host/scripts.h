/* The scripts that the build embeds, as bytecode. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Script {
  const char *name;
  const uint8_t *bytecode;
  size_t size;
};

/* Ended by one without a name. */
extern const struct Script scripts[];
