/* Replaces host/tls.c: reads memory outside of all blocks, which a sanitizer must report. */
#include "host.h"

/* peek(size, at): the byte at an offset of a new block */
static JSValue peek(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double size, at;
  if (!number_of(ctx, argv[0], &size) || !number_of(ctx, argv[1], &at)) return JS_EXCEPTION;
  volatile uint8_t *bytes = js_mallocz(ctx, (size_t)size);
  int found = bytes[(ptrdiff_t)at];
  js_free(ctx, (void *)bytes);
  return JS_NewInt32(ctx, found);
}

/* peekFreed(size): the first byte of a block that was given back */
static JSValue peek_freed(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double size;
  if (!number_of(ctx, argv[0], &size)) return JS_EXCEPTION;
  volatile uint8_t *bytes = js_mallocz(ctx, (size_t)size);
  js_free(ctx, (void *)bytes);
  return JS_NewInt32(ctx, bytes[0]);
}

const JSCFunctionListEntry tls_functions[] = {JS_CFUNC_DEF("peek", 2, peek), JS_CFUNC_DEF("peekFreed", 1, peek_freed)};
const int tls_functions_count = sizeof tls_functions / sizeof *tls_functions;
