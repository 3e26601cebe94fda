/* Replaces host/tls.c: judges certificate chains without a connection, for a test. */
#include <math.h>
#include <psa/crypto.h>
#include <string.h>

#include "trust.h"

/* verify(authorities, chain, name, judge): the flags of Mbed TLS, and the judge's message */
static JSValue verify(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t sizes[3];
  const char *texts[3];
  for (int i = 0; i < 3; i++) texts[i] = utf8_of(ctx, argv[i], &sizes[i]);
  struct Trust trust = {.ctx = ctx, .judge = argv[3], .end = INFINITY};
  mbedtls_x509_crt chain;
  mbedtls_x509_crt_init(&trust.authorities), mbedtls_x509_crt_init(&chain);
  trust_name(&trust, texts[2]);
  uint32_t flags = 0;
  int error = psa_crypto_init() == PSA_SUCCESS ? 0 : -1;
  /* As a client reads them: authorities that cannot be read do not matter, certificates of the server do. */
  if (error == 0) (void)mbedtls_x509_crt_parse(&trust.authorities, (const uint8_t *)texts[0], sizes[0] + 1);
  if (error == 0) error = mbedtls_x509_crt_parse(&chain, (const uint8_t *)texts[1], sizes[1] + 1);
  if (error == 0)
    (void)mbedtls_x509_crt_verify(&chain, &trust.authorities, NULL, NULL, &flags, trust_certificate, &trust);
  mbedtls_x509_crt_free(&trust.authorities), mbedtls_x509_crt_free(&chain);
  for (int i = 0; i < 3; i++) JS_FreeCString(ctx, texts[i]);
  const char *names[] = {"error", "flags", "problem"};
  JSValue values[] = {JS_NewInt32(ctx, error), JS_NewUint32(ctx, flags), JS_NewString(ctx, trust.problem)};
  return object_of(ctx, 3, names, values);
}

const JSCFunctionListEntry tls_functions[] = {JS_CFUNC_DEF("verify", 4, verify)};
const int tls_functions_count = 1;
