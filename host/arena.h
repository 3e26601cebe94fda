#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "quickjs.h"

/* An engine whose memory begins in an arena; NULL where there is no memory. Counted: limit_memory holds for it. */
JSRuntime *new_runtime(bool is_counted);
/* Ends the process with a message once a counted engine takes more. */
void limit_memory(size_t bytes);
