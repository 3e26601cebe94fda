/* compile SCRIPT BYTECODE: a build tool. Bytecode is specific to the engine's version. */
#include <stdio.h>
#include <stdlib.h>

#include "quickjs.h"

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  if (in == NULL || out == NULL || fseek(in, 0, SEEK_END) != 0) return 2;
  size_t size = (size_t)ftell(in), written;
  rewind(in);
  char *text = calloc(1, size + 1); /* the engine needs a NUL at the end */
  if (text == NULL || fread(text, 1, size, in) != size) return 2;
  JSContext *ctx = JS_NewContext(JS_NewRuntime());
  JSValue code = JS_Eval(ctx, text, size, "linkerd-cni", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
  if (JS_IsException(code)) {
    fprintf(stderr, "%s\n", JS_ToCString(ctx, JS_GetException(ctx)));
    return 1;
  }
  int flags = JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE | JS_WRITE_OBJ_STRIP_DEBUG;
  uint8_t *bytecode = JS_WriteObject(ctx, &written, code, flags);
  return bytecode != NULL && fwrite(bytecode, 1, written, out) == written && fclose(out) == 0 ? 0 : 1;
}
