/* One TLS connection by Mbed TLS, whose calls block until a deadline. */
#include <arpa/inet.h>
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"
#include "trust.h"

/* How many addresses of a server are tried at most, and how many milliseconds one has before the next is tried, too. */
#define DIALLED 8
#define STAGGER 250

static struct {
  bool is_open;
  int fd;
  /* Negated errno of the socket's last failure. */
  int error;
  /* When the call at hand has to be over. */
  double end;
  struct Trust trust;
  /* Of the record at hand, and the number of an alert that came unencrypted. */
  uint8_t header[5];
  int alert;
  mbedtls_ssl_context ssl;
  mbedtls_ssl_config config;
  mbedtls_x509_crt own;
  mbedtls_pk_context key;
} tls;

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

/* The socket failed, or the time is over: tls.error says how. */
enum { BROKEN = MBEDTLS_ERR_NET_CONN_RESET };

static int broken(int error) {
  tls.error = -error;
  return BROKEN;
}

/* Mbed TLS reads on within one call while a server sends what means nothing: this is where the time is looked at. */
static int on_send(void *context, const unsigned char *bytes, size_t size) {
  (void)context;
  if (until(tls.end) == 0) return broken(ETIMEDOUT);
  ssize_t sent = send(tls.fd, bytes, size, MSG_NOSIGNAL);
  if (sent >= 0) return (int)sent;
  return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_WRITE : broken(errno);
}

static int on_receive(void *context, unsigned char *into, size_t size) {
  (void)context;
  if (until(tls.end) == 0) return broken(ETIMEDOUT);
  ssize_t got = recv(tls.fd, into, size, 0);
  /* The library asks for the five bytes of a record's header first, and does not tell the number of an alert. */
  if (got == sizeof tls.header && size == sizeof tls.header) memcpy(tls.header, into, sizeof tls.header);
  else if (got == 2 && size == 2 && tls.header[0] == MBEDTLS_SSL_MSG_ALERT) tls.alert = into[1];
  if (got >= 0) return (int)got;
  return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_READ : broken(errno);
}

static int wait_for(short events) {
  struct pollfd socket = {.fd = tls.fd, .events = events};
  int ready;
  do ready = poll(&socket, 1, until(tls.end));
  while (ready < 0 && errno == EINTR);
  return ready > 0 ? 0 : broken(ready == 0 ? ETIMEDOUT : errno);
}

/* Whether a call of Mbed TLS is to be made again: waits for what it wants. Else its result is the last. */
static bool goes_on(int *result) {
  if (*result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) return true;
  if (*result != MBEDTLS_ERR_SSL_WANT_READ && *result != MBEDTLS_ERR_SSL_WANT_WRITE) return false;
  int failure = wait_for(*result == MBEDTLS_ERR_SSL_WANT_READ ? POLLIN : POLLOUT);
  if (failure != 0) *result = failure;
  return failure == 0;
}

static void disconnect(void) {
  if (!tls.is_open) return;
  if (tls.fd >= 0) close(tls.fd);
  mbedtls_ssl_free(&tls.ssl);
  mbedtls_ssl_config_free(&tls.config);
  mbedtls_x509_crt_free(&tls.trust.authorities);
  mbedtls_x509_crt_free(&tls.own);
  mbedtls_pk_free(&tls.key);
  tls.is_open = false;
}

struct Failure {
  const char *step;
  int error;
  char text[2048];
};

static bool fail(struct Failure *failure, const char *step, int error) {
  failure->step = step;
  failure->error = error == BROKEN ? tls.error : error == MBEDTLS_ERR_SSL_CONN_EOF ? -ECONNRESET : 0;
  if (failure->error == 0) mbedtls_strerror(error, failure->text, sizeof failure->text);
  size_t length = strlen(failure->text);
  /* The number of the alert is all that a server says. */
  if (error == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE && tls.alert > 0)
    snprintf(failure->text + length, sizeof failure->text - length, " (alert %d)", tls.alert);
  return false;
}

/* Begins a connection; its descriptor, or negated errno. An IPv4-mapped address is the IPv4 address. */
static int begin_connection(const char *address, const char *port) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found;
  if (getaddrinfo(address, port, &hints, &found) != 0) return -EINVAL;
  const struct sockaddr *to = found->ai_addr;
  socklen_t size = found->ai_addrlen;
  struct sockaddr_in v4 = {.sin_family = AF_INET};
  const struct sockaddr_in6 *v6 = (const void *)to;
  if (found->ai_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    v4.sin_port = v6->sin6_port;
    memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, 4);
    to = (const void *)&v4, size = sizeof v4;
  }
  int on = 1, error = 0, fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
      (connect(fd, to, size) < 0 && errno != EINPROGRESS))
    error = -errno;
  if (error != 0 && fd >= 0) close(fd);
  freeaddrinfo(found);
  return error != 0 ? error : fd;
}

/*
 * Connects to the first of the addresses, a line each, that takes the connection. The next one is tried beside those
 * before when one has failed, or has not answered for a while (RFC 8305).
 */
static bool dial(const char *addresses, const char *port, struct Failure *failure) {
  struct pollfd tried[DIALLED];
  int count = 0, open = 0, error = EINVAL;
  while (tls.fd < 0 && (*addresses != 0 || open > 0)) {
    if (*addresses != 0) {
      char address[INET6_ADDRSTRLEN + 20];
      size_t length = strcspn(addresses, "\n");
      snprintf(address, sizeof address, "%.*s", (int)length, addresses);
      addresses += length + (addresses[length] == '\n');
      int fd = length < sizeof address ? begin_connection(address, port) : -EINVAL;
      if (fd < 0) {
        error = -fd;
        continue;
      }
      tried[count++] = (struct pollfd){.fd = fd, .events = POLLOUT}, open++;
      if (count == DIALLED) addresses = "";
    }
    double limit = now() + STAGGER;
    int ready = poll(tried, (nfds_t)count, until(*addresses != 0 && limit < tls.end ? limit : tls.end));
    if (ready < 0 && errno != EINTR) error = errno;
    if (ready == 0 && until(tls.end) == 0) error = ETIMEDOUT;
    if ((ready < 0 && errno != EINTR) || (ready == 0 && until(tls.end) == 0)) break;
    for (int i = 0; i < count && ready > 0 && tls.fd < 0; i++) {
      if (tried[i].fd < 0 || tried[i].revents == 0) continue;
      int failed = 0;
      socklen_t size = sizeof failed;
      if (getsockopt(tried[i].fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0) failed = errno;
      if (failed == 0) tls.fd = tried[i].fd;
      else error = failed, close(tried[i].fd);
      tried[i].fd = -1, open--;
    }
  }
  for (int i = 0; i < count; i++)
    if (tried[i].fd >= 0) close(tried[i].fd);
  return tls.fd >= 0 || fail(failure, "connect", broken(error));
}

static int configure(bool is_verified) {
  int error = mbedtls_ssl_config_defaults(&tls.config, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                          MBEDTLS_SSL_PRESET_DEFAULT);
  mbedtls_ssl_conf_rng(&tls.config, mbedtls_psa_get_random, MBEDTLS_PSA_RANDOM_STATE);
  mbedtls_ssl_conf_authmode(&tls.config, is_verified ? MBEDTLS_SSL_VERIFY_REQUIRED : MBEDTLS_SSL_VERIFY_NONE);
  mbedtls_ssl_conf_ca_chain(&tls.config, &tls.trust.authorities, NULL);
  if (is_verified) mbedtls_ssl_conf_verify(&tls.config, trust_certificate, &tls.trust);
  return error;
}

/* The configuration is as it stays. */
static int set_up(void) {
  int error = mbedtls_ssl_setup(&tls.ssl, &tls.config);
  mbedtls_ssl_set_bio(&tls.ssl, NULL, on_send, on_receive, NULL);
  /* An address is no name to ask a server for (RFC 6066). */
  return error != 0 ? error : mbedtls_ssl_set_hostname(&tls.ssl, tls.trust.address_size > 0 ? NULL : tls.trust.name);
}

static bool shake_hands(struct Failure *failure) {
  int result;
  do result = mbedtls_ssl_handshake(&tls.ssl);
  while (goes_on(&result));
  if (result == 0) return true;
  uint32_t wrong = mbedtls_ssl_get_verify_result(&tls.ssl);
  bool is_unverified = result == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || result == MBEDTLS_ERR_SSL_BAD_CERTIFICATE;
  if (!is_unverified || wrong == 0 || wrong == (uint32_t)-1) return fail(failure, "handshake", result);
  failure->step = "verify", failure->error = 0;
  if (wrong == MBEDTLS_X509_BADCERT_OTHER) {
    snprintf(failure->text, sizeof failure->text, "%s", tls.trust.problem);
    return false;
  }
  int length = mbedtls_x509_crt_verify_info(failure->text, sizeof failure->text, "", wrong);
  for (int i = 0; i < length; i++)
    if (failure->text[i] == '\n') failure->text[i] = i + 1 < length ? ' ' : 0;
  return false;
}

enum { ADDRESSES, NAME, CA, CERTIFICATE, KEY, TEXTS };
static const char *const texts_of_server[TEXTS] = {"addresses", "name", "ca", "certificate", "key"};

static bool open_connection(const char **text, const size_t *size, const char *port, bool is_insecure,
                            struct Failure *failure) {
  tls.is_open = true, tls.fd = -1, tls.alert = 0;
  mbedtls_ssl_init(&tls.ssl), mbedtls_ssl_config_init(&tls.config);
  mbedtls_x509_crt_init(&tls.trust.authorities), mbedtls_x509_crt_init(&tls.own), mbedtls_pk_init(&tls.key);
  trust_name(&tls.trust, text[NAME]);
  int error = psa_crypto_init() == PSA_SUCCESS ? configure(!is_insecure) : MBEDTLS_ERR_ERROR_GENERIC_ERROR;
  if (error != 0) return fail(failure, "handshake", error);
  /* The sizes count the NUL: only then PEM is looked for. One authority that can be read is enough. */
  if (size[CA] > 0) error = mbedtls_x509_crt_parse(&tls.trust.authorities, (const uint8_t *)text[CA], size[CA] + 1);
  if (error < 0) return fail(failure, "ca", error);
  if (size[CERTIFICATE] > 0) {
    int (*random)(void *, unsigned char *, size_t) = mbedtls_psa_get_random;
    const uint8_t *key = (const uint8_t *)text[KEY];
    error = mbedtls_x509_crt_parse(&tls.own, (const uint8_t *)text[CERTIFICATE], size[CERTIFICATE] + 1);
    if (error == 0) error = mbedtls_pk_parse_key(&tls.key, key, size[KEY] + 1, NULL, 0, random, MBEDTLS_PSA_RANDOM_STATE);
    if (error == 0) error = mbedtls_pk_check_pair(&tls.own.pk, &tls.key, random, MBEDTLS_PSA_RANDOM_STATE);
    if (error == 0) error = mbedtls_ssl_conf_own_cert(&tls.config, &tls.own, &tls.key);
    if (error != 0) return fail(failure, "certificate", error);
  }
  if ((error = set_up()) != 0) return fail(failure, "handshake", error);
  return dial(text[ADDRESSES], port, failure) && shake_hands(failure);
}

/* tlsConnect(server, milliseconds) */
static JSValue tls_connect(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  const char *text[TEXTS] = {NULL};
  size_t size[TEXTS];
  double port_number, milliseconds;
  char port[16];
  struct Failure failure = {0};
  bool is_whole = number_of(ctx, argv[1], &milliseconds), is_open = false, is_terminated = true;
  tls.end = is_whole ? now() + milliseconds : 0;
  for (int i = 0; i < TEXTS && is_whole; i++) {
    JSValue value = JS_GetPropertyStr(ctx, argv[0], texts_of_server[i]);
    is_whole = !JS_IsException(value) && (text[i] = utf8_of(ctx, value, &size[i])) != NULL;
    /* Names and addresses end at a NUL for whoever reads them here. */
    if (is_whole && strlen(text[i]) != size[i]) is_terminated = false;
    JS_FreeValue(ctx, value);
  }
  JSValue port_value = is_whole ? JS_GetPropertyStr(ctx, argv[0], "port") : JS_EXCEPTION;
  JSValue insecure = is_whole ? JS_GetPropertyStr(ctx, argv[0], "insecure") : JS_EXCEPTION;
  JSValue judge = is_whole ? JS_GetPropertyStr(ctx, argv[0], "judge") : JS_EXCEPTION;
  is_whole = is_whole && !JS_IsException(port_value) && !JS_IsException(insecure) && !JS_IsException(judge) &&
             number_of(ctx, port_value, &port_number);
  if (is_whole) {
    disconnect();
    tls.trust = (struct Trust){.ctx = ctx, .judge = judge, .end = tls.end};
    snprintf(port, sizeof port, "%.0f", port_number);
    is_open = is_terminated ? open_connection(text, size, port, JS_ToBool(ctx, insecure) == 1, &failure)
                            : fail(&failure, "connect", broken(EINVAL));
    if (!is_open) disconnect();
  }
  for (int i = 0; i < TEXTS; i++)
    if (text[i] != NULL) JS_FreeCString(ctx, text[i]);
  JS_FreeValue(ctx, insecure), JS_FreeValue(ctx, judge);
  if (!is_whole) return JS_EXCEPTION;
  if (is_open) return JS_UNDEFINED;
  const char *names[] = {"step", "error", "text"};
  JSValue values[] = {JS_NewString(ctx, failure.step), JS_NewInt32(ctx, failure.error), JS_NewString(ctx, failure.text)};
  return object_of(ctx, 3, names, values);
}

/* tlsSend(bytes, milliseconds), tlsReceive(into, milliseconds) */
static JSValue tls_transfer(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv, int is_send) {
  (void)self, (void)argc;
  size_t size;
  double milliseconds;
  uint8_t *bytes = JS_GetUint8Array(ctx, &size, argv[0]);
  if (bytes == NULL || !number_of(ctx, argv[1], &milliseconds)) return JS_EXCEPTION;
  if (!tls.is_open) return JS_NewInt32(ctx, -ENOTCONN);
  tls.end = now() + milliseconds;
  int result;
  do result = is_send ? mbedtls_ssl_write(&tls.ssl, bytes, size) : mbedtls_ssl_read(&tls.ssl, bytes, size);
  while (goes_on(&result));
  if (result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY || result == MBEDTLS_ERR_SSL_CONN_EOF) result = is_send ? -EPIPE : 0;
  else if (result < 0) result = result == BROKEN ? tls.error : -EPROTO;
  return JS_NewInt32(ctx, result);
}

static JSValue tls_close(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)ctx, (void)self, (void)argc, (void)argv;
  /* Without waiting: the socket does not block. */
  tls.end = now() + 1000;
  if (tls.is_open) mbedtls_ssl_close_notify(&tls.ssl);
  disconnect();
  return JS_UNDEFINED;
}

const JSCFunctionListEntry tls_functions[] = {
    JS_CFUNC_DEF("tlsConnect", 2, tls_connect),
    JS_CFUNC_MAGIC_DEF("tlsSend", 2, tls_transfer, true),
    JS_CFUNC_MAGIC_DEF("tlsReceive", 2, tls_transfer, false),
    JS_CFUNC_DEF("tlsClose", 0, tls_close),
};
const int tls_functions_count = sizeof tls_functions / sizeof *tls_functions;
