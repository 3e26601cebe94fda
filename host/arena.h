#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "quickjs.h"

/* An engine whose memory begins in an arena; NULL if memory is short. If it is counted, limit_memory limits it. */
JSRuntime *new_runtime(bool is_counted);
/* A counted engine that takes more ends the process with a message. */
void limit_memory(size_t bytes);
