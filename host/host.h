/* What the C files of the plugin's executable share. port.ts describes the functions that they provide. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

/* Milliseconds of a clock that only goes forward. */
double now(void);
/* Milliseconds from now until then, as poll(2) takes them. */
int until(double then);
/* Whether it is a number, and which; throws where it is none. Runs no script. */
bool number_of(JSContext *ctx, JSValueConst value, double *number);
/* A text in UTF-8, ended by NUL (and it may hold others); NULL where it threw. JS_FreeCString frees it. */
const char *utf8_of(JSContext *ctx, JSValueConst value, size_t *size);

/* An object of these members, which it takes; throws where making one of them did. */
JSValue object_of(JSContext *ctx, int count, const char **names, const JSValue *values);

extern const JSCFunctionListEntry tls_functions[];
extern const int tls_functions_count;
extern const JSCFunctionListEntry key_functions[];
extern const int key_functions_count;
