/* Keys, hashes and signatures by Mbed TLS. The formats of certificates and keys are left to the scripts. */
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/psa_util.h>
#include <psa/crypto.h>
#include <sys/random.h>

#include "host.h"

/* Bytes of the largest public key: RSA with 16384 bits, the library's maximum. */
#define PUBLIC_SIZE 2600
/* Bytes of a P-256 private key and of its public point. */
#define PRIVATE 32
#define POINT 65

psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *into,
                                             size_t size, size_t *made) {
  (void)context;
  for (*made = 0; *made < size;) {
    ssize_t got = getrandom(into + *made, size - *made, 0);
    if (got > 0) *made += (size_t)got;
    else if (errno != EINTR) return PSA_ERROR_INSUFFICIENT_ENTROPY;
  }
  return PSA_SUCCESS;
}

static JSValue failed(JSContext *ctx, int error) {
  char text[256];
  mbedtls_strerror(error, text, sizeof text);
  return JS_ThrowTypeError(ctx, "%s", text);
}

/* Computes the hash with so many bits; returns its size, 0 if it threw. */
static size_t hash_of(JSContext *ctx, JSValueConst value, JSValueConst bits_value, uint8_t *hash,
                      mbedtls_md_type_t *type) {
  double bits;
  size_t size, made = 0;
  const uint8_t *bytes = JS_GetUint8Array(ctx, &size, value);
  if (bytes == NULL || !number_of(ctx, bits_value, &bits)) return 0;
  *type = bits == 512 ? MBEDTLS_MD_SHA512 : bits == 384 ? MBEDTLS_MD_SHA384 : MBEDTLS_MD_SHA256;
  psa_algorithm_t algorithm = bits == 512 ? PSA_ALG_SHA_512 : bits == 384 ? PSA_ALG_SHA_384 : PSA_ALG_SHA_256;
  if (psa_crypto_init() != PSA_SUCCESS ||
      psa_hash_compute(algorithm, bytes, size, hash, PSA_HASH_MAX_SIZE, &made) != PSA_SUCCESS)
    JS_ThrowInternalError(ctx, "cannot hash");
  return made;
}

/* hash(bytes, bits) */
static JSValue key_hash(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  uint8_t hash[PSA_HASH_MAX_SIZE];
  mbedtls_md_type_t type;
  size_t size = hash_of(ctx, argv[0], argv[1], hash, &type);
  return size == 0 ? JS_EXCEPTION : JS_NewUint8ArrayCopy(ctx, hash, size);
}

/* keyGenerate(): a P-256 private key, followed by its public point */
static JSValue key_generate(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  uint8_t bytes[PRIVATE + POINT];
  size_t size;
  psa_key_id_t key = PSA_KEY_ID_NULL;
  psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
  psa_set_key_type(&attributes, PSA_KEY_TYPE_ECC_KEY_PAIR(PSA_ECC_FAMILY_SECP_R1));
  psa_set_key_bits(&attributes, 256);
  psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_EXPORT);
  bool is_made = psa_crypto_init() == PSA_SUCCESS && psa_generate_key(&attributes, &key) == PSA_SUCCESS &&
                 psa_export_key(key, bytes, PRIVATE, &size) == PSA_SUCCESS && size == PRIVATE &&
                 psa_export_public_key(key, bytes + PRIVATE, POINT, &size) == PSA_SUCCESS && size == POINT;
  psa_destroy_key(key);
  return is_made ? JS_NewUint8ArrayCopy(ctx, bytes, sizeof bytes) : JS_ThrowInternalError(ctx, "cannot make a key");
}

/* Reads a private key in PEM; false if it threw. Free it with mbedtls_pk_free in either case. */
static bool read_key(JSContext *ctx, JSValueConst value, mbedtls_pk_context *key) {
  size_t size;
  mbedtls_pk_init(key);
  const char *pem = utf8_of(ctx, value, &size);
  if (pem == NULL) return false;
  /* The library looks for PEM only if the size includes the NUL. */
  int error = psa_crypto_init() != PSA_SUCCESS
                  ? MBEDTLS_ERR_ERROR_GENERIC_ERROR
                  : mbedtls_pk_parse_key(key, (const uint8_t *)pem, size + 1, NULL, 0, mbedtls_psa_get_random,
                                         MBEDTLS_PSA_RANDOM_STATE);
  JS_FreeCString(ctx, pem);
  if (error != 0) failed(ctx, error);
  return error == 0;
}

/* keyPublic(key): SubjectPublicKeyInfo */
static JSValue key_public(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  mbedtls_pk_context key;
  uint8_t der[PUBLIC_SIZE];
  JSValue made = JS_EXCEPTION;
  if (read_key(ctx, argv[0], &key)) {
    int size = mbedtls_pk_write_pubkey_der(&key, der, sizeof der); /* writes to the end of the buffer */
    made = size < 0 ? failed(ctx, size) : JS_NewUint8ArrayCopy(ctx, der + sizeof der - size, (size_t)size);
  }
  mbedtls_pk_free(&key);
  return made;
}

/* keySign(key, bytes, bits) */
static JSValue key_sign(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  mbedtls_pk_context key;
  mbedtls_md_type_t type;
  uint8_t hash[PSA_HASH_MAX_SIZE], signature[MBEDTLS_PK_SIGNATURE_MAX_SIZE];
  size_t size, made_size;
  JSValue made = JS_EXCEPTION;
  if (read_key(ctx, argv[0], &key) && (size = hash_of(ctx, argv[1], argv[2], hash, &type)) > 0) {
    int error = mbedtls_pk_sign(&key, type, hash, size, signature, sizeof signature, &made_size, mbedtls_psa_get_random,
                                MBEDTLS_PSA_RANDOM_STATE);
    made = error != 0 ? failed(ctx, error) : JS_NewUint8ArrayCopy(ctx, signature, made_size);
  }
  mbedtls_pk_free(&key);
  return made;
}

const JSCFunctionListEntry key_functions[] = {
    JS_CFUNC_DEF("hash", 2, key_hash),
    JS_CFUNC_DEF("keyGenerate", 0, key_generate),
    JS_CFUNC_DEF("keyPublic", 1, key_public),
    JS_CFUNC_DEF("keySign", 3, key_sign),
};
const int key_functions_count = sizeof key_functions / sizeof *key_functions;
