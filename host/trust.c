/*
 * Decides whether to trust a server's certificate. Mbed TLS verifies signatures, validity, authorities, path lengths;
 * this file chooses the path to verify, and compares the name. A script judges extensions that Mbed TLS does not parse.
 */
#define HOST_PARSES_CERTIFICATES
#include "trust.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <mbedtls/asn1.h>
#include <mbedtls/oid.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* If the first path fails: how many more to verify at most, and how many certificates to try in all of them. */
#define PATHS 16
#define LINKS 1000

/* Whether a certificate was parsed that has an extension which the library does not check. */
static bool needs_judge;

/* Leaves extensions that the library's parser does not know to the judge: critical ones, and name constraints. */
static int leave_extension(void *context, const mbedtls_x509_crt *certificate, const mbedtls_x509_buf *id, int is_critical,
                           const unsigned char *at, const unsigned char *end) {
  (void)context, (void)certificate, (void)at, (void)end;
  const size_t size = MBEDTLS_OID_SIZE(MBEDTLS_OID_NAME_CONSTRAINTS);
  needs_judge |= is_critical || (id->len == size && memcmp(id->p, MBEDTLS_OID_NAME_CONSTRAINTS, size) == 0);
  return 0;
}

/* Replaces the library's function, which its TLS and its PEM parser call (see mbedtls.h). */
int mbedtls_x509_crt_parse_der(mbedtls_x509_crt *chain, const unsigned char *bytes, size_t size) {
  return mbedtls_x509_crt_parse_der_with_ext_cb(chain, bytes, size, 1, leave_extension, NULL);
}

/* Writes the bytes of an address; returns their number, 0 if it is not an address. Unwraps IPv4-mapped addresses. */
static size_t address_of(const char *text, uint8_t *address) {
  if (inet_pton(AF_INET, text, address) == 1) return 4;
  if (inet_pton(AF_INET6, text, address) != 1) return 0;
  if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address)) return 16;
  memmove(address, address + 12, 4);
  return 4;
}

bool trust_name(struct Trust *trust, const char *name) {
  trust->address_size = address_of(name, trust->address);
  return snprintf(trust->name, sizeof trust->name, "%s", name) < (int)sizeof trust->name;
}

static bool is_equal(const mbedtls_x509_buf *one, const mbedtls_x509_buf *other) {
  return one->len == other->len && memcmp(one->p, other->p, one->len) == 0;
}

/* Whether the text is a host name whose labels can be compared one by one; a pattern may begin with the label `*`. */
static bool is_host_name(const char *text, size_t size, bool is_pattern) {
  size_t label = 0;
  bool is_wild = is_pattern && size > 1 && text[0] == '*' && text[1] == '.';
  for (size_t i = is_wild ? 1 : 0; i < size; i++) {
    if (text[i] == '.' && (label > 0 || (is_wild && i == 1))) label = 0;
    else if (isalnum((unsigned char)text[i]) || text[i] == '_' || (text[i] == '-' && label > 0)) label++;
    else return false;
  }
  return label > 0;
}

/* Whether a certificate's DNS name matches this name: RFC 6125, as in Go's crypto/x509. */
static bool matches(const char *pattern, size_t size, const char *name) {
  size_t length = strlen(name), plain = length > 0 && name[length - 1] == '.' ? length - 1 : length;
  if (!is_host_name(name, plain, false) || !is_host_name(pattern, size, true))
    return size == length && size > 0 && strcmp(name, ".") != 0 && strncasecmp(pattern, name, size) == 0;
  const char *dot = pattern[0] == '*' ? memchr(name, '.', plain) : NULL;
  size_t first = dot == NULL ? 0 : (size_t)(dot - name);
  if (pattern[0] == '*') pattern++, size--;
  return (dot != NULL || pattern[0] != '.') && size == plain - first && strncasecmp(pattern, name + first, size) == 0;
}

bool trust_is_named(const struct Trust *trust, const mbedtls_x509_crt *certificate) {
  if (!mbedtls_x509_crt_has_ext_type(certificate, MBEDTLS_X509_EXT_SUBJECT_ALT_NAME)) return false;
  for (const mbedtls_x509_sequence *each = &certificate->subject_alt_names; each != NULL; each = each->next) {
    int kind = each->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK;
    const uint8_t *bytes = each->buf.p;
    size_t size = each->buf.len;
    if (kind == MBEDTLS_X509_SAN_DNS_NAME && trust->address_size == 0 && matches((const char *)bytes, size, trust->name))
      return true;
    if (kind != MBEDTLS_X509_SAN_IP_ADDRESS || trust->address_size == 0) continue;
    struct in6_addr address; /* the certificate's own bytes are not aligned */
    if (size == sizeof address && IN6_IS_ADDR_V4MAPPED((struct in6_addr *)memcpy(&address, bytes, size)))
      bytes += 12, size = 4;
    if (size == trust->address_size && memcmp(bytes, trust->address, size) == 0) return true;
  }
  return false;
}

/* Whether a certificate is itself one of the authorities, and needs no issuer. */
static bool is_authority(const struct Trust *trust, const mbedtls_x509_crt *certificate) {
  for (const mbedtls_x509_crt *each = &trust->authorities; each != NULL; each = each->next)
    if (is_equal(&each->raw, &certificate->raw)) return true;
  return false;
}

static bool is_for_servers(const mbedtls_x509_crt *certificate) {
  const size_t size = MBEDTLS_OID_SIZE(MBEDTLS_OID_SERVER_AUTH);
  return mbedtls_x509_crt_check_extended_key_usage(certificate, MBEDTLS_OID_SERVER_AUTH, size) == 0;
}

/* Whether the current path is valid: authorities may issue for servers, and the script accepts the rest. */
static bool is_approved(struct Trust *trust) {
  for (int i = 1; i < trust->length; i++) {
    if (is_for_servers(trust->path[i])) continue;
    snprintf(trust->problem, sizeof trust->problem, "a certificate of the chain is not for servers");
    return false;
  }
  if (!needs_judge) return true;
  JSContext *ctx = trust->ctx;
  JSValue chain = JS_NewArray(ctx), problem = JS_EXCEPTION;
  bool is_whole = !JS_IsException(chain);
  for (int i = 0; i < trust->length && is_whole; i++) {
    JSValue der = JS_NewUint8ArrayCopy(ctx, trust->path[i]->raw.p, trust->path[i]->raw.len);
    is_whole = !JS_IsException(der) && JS_SetPropertyUint32(ctx, chain, (uint32_t)i, der) >= 0;
  }
  if (is_whole) problem = JS_Call(ctx, trust->judge, JS_UNDEFINED, 1, (JSValueConst *)&chain);
  JS_FreeValue(ctx, chain);
  size_t size = 0;
  const char *text = JS_IsString(problem) ? utf8_of(ctx, problem, &size) : NULL;
  bool is_approved = text != NULL && size == 0;
  if (!is_approved) snprintf(trust->problem, sizeof trust->problem, "%s", text == NULL ? "it could not be checked" : text);
  if (text != NULL) JS_FreeCString(ctx, text);
  else JS_FreeValue(ctx, JS_GetException(ctx));
  JS_FreeValue(ctx, problem);
  return is_approved;
}

static int collect(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags) {
  (void)flags;
  struct Trust *trust = context;
  if (depth < PATH_LENGTH) trust->path[depth] = certificate;
  if (depth >= trust->length) trust->length = depth + 1;
  return 0;
}

/*
 * Looks for a valid path among the certificates that the server sent, in any order: Mbed TLS takes the first issuer
 * with the right name, and looks for it only after the certificate that it issued. `links` is the path so far.
 */
static bool find_path(struct Trust *trust, mbedtls_x509_crt *links, int length, const mbedtls_x509_crt *sent) {
  mbedtls_x509_crt *last = &links[length - 1];
  for (const mbedtls_x509_crt *each = &trust->authorities; each != NULL; each = each->next) {
    if (!is_equal(&last->issuer_raw, &each->subject_raw)) continue;
    if (trust->paths-- <= 0 || until(trust->end) == 0) return false;
    mbedtls_x509_crt root = *each;
    uint32_t wrong = 0;
    root.next = last->next = NULL;
    trust->length = 0;
    if (mbedtls_x509_crt_verify(links, &root, NULL, NULL, &wrong, collect, trust) == 0 && is_approved(trust)) return true;
  }
  for (const mbedtls_x509_crt *each = sent; each != NULL && length <= MBEDTLS_X509_MAX_INTERMEDIATE_CA; each = each->next) {
    bool is_used = !is_equal(&last->issuer_raw, &each->subject_raw);
    for (int i = 0; i < length && !is_used; i++) is_used = is_equal(&links[i].raw, &each->raw);
    if (is_used) continue;
    /* A server may send many certificates with one name, so that trying all paths would take years. */
    if (trust->paths <= 0 || trust->links-- <= 0) return false;
    links[length] = *each, last->next = &links[length];
    if (find_path(trust, links, length + 1, sent)) return true;
  }
  return false;
}

int trust_certificate(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags) {
  /* Flags of the server's certificate alone, not of its issuers. */
  const uint32_t own = MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE | MBEDTLS_X509_BADCERT_BAD_PK |
                       MBEDTLS_X509_BADCERT_BAD_KEY;
  struct Trust *trust = context;
  /* The authority comes first, the server's certificate last. */
  if (trust->length == 0) trust->wrong = 0, trust->problem[0] = 0;
  collect(trust, certificate, depth, flags);
  const uint32_t alone = *flags & own;
  trust->wrong |= *flags;
  *flags = 0;
  if (depth != 0) return 0;
  uint32_t wrong = trust->wrong & ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
  if (is_authority(trust, certificate)) {
    trust->length = 1, trust->path[0] = certificate;
    wrong = alone;
    if (!is_approved(trust)) wrong |= MBEDTLS_X509_BADCERT_OTHER;
  } else {
    if (wrong == 0 && !is_approved(trust)) wrong = MBEDTLS_X509_BADCERT_OTHER;
    if (wrong != 0) {
      mbedtls_x509_crt links[PATH_LENGTH];
      links[0] = *certificate;
      trust->paths = PATHS, trust->links = LINKS;
      if (find_path(trust, links, 1, certificate->next)) wrong = 0;
    }
  }
  trust->length = 0;
  if (!trust_is_named(trust, certificate)) wrong |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
  if (!is_for_servers(certificate)) wrong |= MBEDTLS_X509_BADCERT_EXT_KEY_USAGE;
  *flags = wrong;
  return 0;
}
