#pragma once
#include "quickjs.h"

/* An engine whose memory begins in an arena; NULL where there is no memory. */
JSRuntime *new_runtime(void);
