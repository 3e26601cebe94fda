/* Declarations that the C files of the plugin's executable share. port.ts describes the functions they provide. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

/* Milliseconds of the monotonic clock. */
double now(void);
/* Milliseconds from now until then, for poll(2). */
int until(double then);
/* Reads a number; throws if the value is not one. Runs no script. */
bool number_of(JSContext *ctx, JSValueConst value, double *number);
/* A string in UTF-8 that ends with a NUL and may contain others; NULL if it threw. Free it with JS_FreeCString. */
const char *utf8_of(JSContext *ctx, JSValueConst value, size_t *size);

/* An object with these members, which it takes over; throws if making one of them threw. */
JSValue object_of(JSContext *ctx, int count, const char **names, const JSValue *values);

extern const JSCFunctionListEntry tls_functions[];
extern const int tls_functions_count;
extern const JSCFunctionListEntry key_functions[];
extern const int key_functions_count;
