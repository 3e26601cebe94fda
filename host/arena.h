#pragma once
#include <stddef.h>

#include "quickjs.h"

/* An engine whose memory begins in an arena; NULL if memory is short. */
JSRuntime *new_runtime(void);
/* From here on, taking more ends the process with a message. */
void limit_memory(size_t bytes);
