/* Decides whether to trust a server's certificate. */
#pragma once
#include <mbedtls/x509_crt.h>

#include "host.h"

/* The longest path from a server's certificate to an authority, both included, that the library verifies. */
#define PATH_LENGTH (MBEDTLS_X509_MAX_INTERMEDIATE_CA + 2)

struct Trust {
  mbedtls_x509_crt authorities;
  /* The server's name. If it is an address, the certificate must be for this address. */
  char name[256];
  uint8_t address[16];
  size_t address_size;
  /* A script's function that checks what the library does not: `judge(chain)` returns what is wrong. */
  JSContext *ctx;
  JSValueConst judge;
  /* The path that was verified last, the server's certificate first, and what was wrong with its certificates. */
  const mbedtls_x509_crt *path[PATH_LENGTH];
  int length;
  uint32_t wrong;
  /* How many more paths may be verified, and how many more certificates tried in them. */
  int paths, links;
  /* When to stop looking for another path. */
  double end;
  /* What `judge` returned. */
  char problem[512];
};

/* Sets the name; false if it is too long. */
bool trust_name(struct Trust *trust, const char *name);
/* Whether a certificate is for the name. */
bool trust_is_named(const struct Trust *trust, const mbedtls_x509_crt *certificate);
/* A callback of mbedtls_x509_crt_verify and mbedtls_ssl_conf_verify, whose context is a struct Trust. */
int trust_certificate(void *trust, mbedtls_x509_crt *certificate, int depth, uint32_t *flags);
