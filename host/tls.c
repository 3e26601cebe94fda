/* TLS by Mbed TLS, for the connections of an event loop. */
#include <errno.h>
#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/pem.h>
#include <mbedtls/psa_util.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "trust.h"

/* How many milliseconds one call of the event loop may spend on what the other end sends. */
#define SLICE 20
/* How many milliseconds to look for other paths to an authority. */
#define VERIFY 1000

/* Settings of connections: each client has its own, and a server's connections share one. */
struct Settings {
  int users;
  mbedtls_ssl_config config;
  mbedtls_x509_crt own;
  mbedtls_pk_context key;
  /* Only for clients, which have no certificate of their own. */
  struct Trust trust;
};

struct Connection {
  int fd;
  /* Negated errno of the socket's last failure. */
  int error;
  /* Deadline of the current call. */
  double end;
  /* The current record's header, and the number of an unencrypted alert. */
  uint8_t header[5];
  int alert;
  mbedtls_ssl_context ssl;
  struct Settings *settings;
};

/* The socket failed: see connection->error. */
enum { BROKEN = MBEDTLS_ERR_NET_CONN_RESET };

static int broken(struct Connection *connection, int error) {
  connection->error = -error;
  return BROKEN;
}

/*
 * Mbed TLS keeps reading within one call while the other end sends records without content, so the deadline is checked
 * here. The caller then waits for the socket, if it has time left.
 */
static int on_send(void *context, const unsigned char *bytes, size_t size) {
  struct Connection *connection = context;
  if (until(connection->end) == 0) return MBEDTLS_ERR_SSL_WANT_WRITE;
  ssize_t sent = send(connection->fd, bytes, size, MSG_NOSIGNAL);
  if (sent >= 0) return (int)sent;
  return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_WRITE : broken(connection, errno);
}

static int on_receive(void *context, unsigned char *into, size_t size) {
  struct Connection *connection = context;
  uint8_t *header = connection->header;
  if (until(connection->end) == 0) return MBEDTLS_ERR_SSL_WANT_READ;
  ssize_t got = recv(connection->fd, into, size, 0);
  /* The library reads the five bytes of a record's header first, and does not report the number of an alert. */
  if (got == sizeof connection->header && size == sizeof connection->header) memcpy(header, into, (size_t)got);
  else if (got == 2 && size == 2 && header[0] == MBEDTLS_SSL_MSG_ALERT) connection->alert = into[1];
  if (got >= 0) return (int)got;
  return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_READ : broken(connection, errno);
}

/* NULL if there is no memory. */
static struct Settings *new_settings(void) {
  struct Settings *settings = tls_calloc(1, sizeof *settings);
  if (settings == NULL) return NULL;
  settings->users = 1;
  mbedtls_ssl_config_init(&settings->config);
  mbedtls_x509_crt_init(&settings->trust.authorities), mbedtls_x509_crt_init(&settings->own);
  mbedtls_pk_init(&settings->key);
  return settings;
}

static void leave(struct Settings *settings) {
  if (settings == NULL || --settings->users > 0) return;
  mbedtls_ssl_config_free(&settings->config);
  mbedtls_x509_crt_free(&settings->trust.authorities), mbedtls_x509_crt_free(&settings->own);
  mbedtls_pk_free(&settings->key);
  tls_free(settings);
}

/* A connection without a socket, which takes over the settings; NULL if there is no memory. */
static struct Connection *new_connection(struct Settings *settings) {
  struct Connection *connection = settings == NULL ? NULL : tls_calloc(1, sizeof *connection);
  if (connection == NULL) {
    leave(settings);
    return NULL;
  }
  connection->fd = -1, connection->settings = settings;
  mbedtls_ssl_init(&connection->ssl);
  mbedtls_ssl_set_bio(&connection->ssl, connection, on_send, on_receive, NULL);
  return connection;
}

static void disconnect(struct Connection *connection) {
  if (connection == NULL) return;
  if (connection->fd >= 0) close(connection->fd);
  mbedtls_ssl_free(&connection->ssl);
  leave(connection->settings);
  tls_free(connection);
}

struct Failure {
  const char *step;
  int error;
  char text[2048];
};

static bool fail(struct Failure *failure, const char *step, int error) {
  failure->step = step, failure->error = 0;
  mbedtls_strerror(error, failure->text, sizeof failure->text);
  return false;
}

static bool fail_on(const struct Connection *connection, struct Failure *failure, const char *step, int error) {
  fail(failure, step, error);
  size_t length = strlen(failure->text);
  /* The other end sends only the number of the alert. */
  if (error == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE && connection->alert > 0)
    snprintf(failure->text + length, sizeof failure->text - length, " (alert %d)", connection->alert);
  failure->error = error == BROKEN ? connection->error : error == MBEDTLS_ERR_SSL_CONN_EOF ? -ECONNRESET : 0;
  if (failure->error != 0) failure->text[0] = 0;
  return false;
}

static int configure(struct Settings *settings, int role, int verification) {
  mbedtls_ssl_config *config = &settings->config;
  if (psa_crypto_init() != PSA_SUCCESS) return MBEDTLS_ERR_ERROR_GENERIC_ERROR;
  int error = mbedtls_ssl_config_defaults(config, role, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
  mbedtls_ssl_conf_rng(config, mbedtls_psa_get_random, MBEDTLS_PSA_RANDOM_STATE);
  mbedtls_ssl_conf_authmode(config, verification);
  return error;
}

/* Sets this end's certificate, with intermediate certificates, and its key. Sizes do not include the NUL. */
static int use_pair(struct Settings *settings, const char *certificate, size_t certificate_size, const char *key,
                    size_t key_size) {
  int (*random)(void *, unsigned char *, size_t) = mbedtls_psa_get_random;
  int error = mbedtls_x509_crt_parse(&settings->own, (const uint8_t *)certificate, certificate_size + 1);
  if (error == 0)
    error = mbedtls_pk_parse_key(&settings->key, (const uint8_t *)key, key_size + 1, NULL, 0, random,
                                 MBEDTLS_PSA_RANDOM_STATE);
  if (error == 0) error = mbedtls_pk_check_pair(&settings->own.pk, &settings->key, random, MBEDTLS_PSA_RANDOM_STATE);
  return error == 0 ? mbedtls_ssl_conf_own_cert(&settings->config, &settings->own, &settings->key) : error;
}

/* Says how a handshake failed. */
static bool fail_handshake(const struct Connection *connection, int result, struct Failure *failure) {
  uint32_t wrong = mbedtls_ssl_get_verify_result(&connection->ssl);
  bool is_unverified = result == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || result == MBEDTLS_ERR_SSL_BAD_CERTIFICATE;
  if (!is_unverified || wrong == 0 || wrong == (uint32_t)-1) return fail_on(connection, failure, "handshake", result);
  failure->step = "verify", failure->error = 0;
  if (wrong == MBEDTLS_X509_BADCERT_OTHER) {
    snprintf(failure->text, sizeof failure->text, "%s", connection->settings->trust.problem);
    return false;
  }
  int length = mbedtls_x509_crt_verify_info(failure->text, sizeof failure->text, "", wrong);
  for (int i = 0; i < length; i++)
    if (failure->text[i] == '\n') failure->text[i] = i + 1 < length ? ' ' : 0;
  return false;
}

static bool prepare(struct Connection *connection, const char *name, const char *ca, size_t ca_size,
                    struct Failure *failure) {
  struct Settings *settings = connection->settings;
  struct Trust *trust = &settings->trust;
  int error = configure(settings, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_VERIFY_REQUIRED);
  if (error == 0 && !trust_name(trust, name)) error = MBEDTLS_ERR_SSL_BAD_INPUT_DATA;
  if (error != 0) return fail(failure, "handshake", error);
  mbedtls_ssl_conf_ca_chain(&settings->config, &trust->authorities, NULL);
  mbedtls_ssl_conf_verify(&settings->config, trust_certificate, trust);
  /* The library looks for PEM only if the size includes the NUL. One authority that can be read is enough. */
  if (ca_size > 0) error = mbedtls_x509_crt_parse(&trust->authorities, (const uint8_t *)ca, ca_size + 1);
  if (error < 0) return fail(failure, "ca", error);
  error = mbedtls_ssl_setup(&connection->ssl, &settings->config);
  /* An address must not be sent as the server's name (RFC 6066). */
  if (error == 0) error = mbedtls_ssl_set_hostname(&connection->ssl, trust->address_size > 0 ? NULL : trust->name);
  return error == 0 || fail(failure, "handshake", error);
}

static JSValue failure_of(JSContext *ctx, const struct Failure *failure) {
  const char *names[] = {"step", "error", "text"};
  JSValue values[] = {JS_NewString(ctx, failure->step), JS_NewInt32(ctx, failure->error),
                      JS_NewString(ctx, failure->text)};
  return object_of(ctx, 3, names, values);
}

/* The result of reading or writing; a negated errno if it is an error. */
static int outcome_of(const struct Connection *connection, int result, bool is_send) {
  if (result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY || result == MBEDTLS_ERR_SSL_CONN_EOF) return is_send ? -EPIPE : 0;
  return result >= 0 ? result : result == BROKEN ? connection->error : -EPROTO;
}

/* Sends close_notify if the socket accepts it, and closes. */
static void part(struct Connection *connection) {
  connection->end = now() + SLICE;
  mbedtls_ssl_close_notify(&connection->ssl);
  disconnect(connection);
}

/* Classes of objects for scripts: a connection, and the settings that a server's connections share. */
static JSClassID connections, servers;

static void finalize_connection(JSRuntime *runtime, JSValueConst object) {
  (void)runtime;
  disconnect(JS_GetOpaque(object, connections));
}

static void finalize_server(JSRuntime *runtime, JSValueConst object) {
  (void)runtime;
  leave(JS_GetOpaque(object, servers));
}

/* An object that holds `opaque`; an exception if there is no memory. */
static JSValue handle_of(JSContext *ctx, JSClassID *class, const JSClassDef *definition, void *opaque) {
  JSRuntime *runtime = JS_GetRuntime(ctx);
  JS_NewClassID(runtime, class);
  JSValue object = JS_EXCEPTION;
  if (JS_IsRegisteredClass(runtime, *class) || JS_NewClass(runtime, *class, definition) == 0)
    object = JS_NewObjectProtoClass(ctx, JS_NULL, *class);
  if (!JS_IsException(object)) JS_SetOpaque(object, opaque);
  return object;
}

static JSValue connection_handle(JSContext *ctx, struct Connection *connection) {
  static const JSClassDef definition = {.class_name = "TlsConnection", .finalizer = finalize_connection};
  JSValue object = handle_of(ctx, &connections, &definition, connection);
  if (JS_IsException(object)) connection->fd = -1, disconnect(connection);
  return object;
}

/* tlsClient(socket, name, ca): a connection, which takes over the socket, or a failure */
static JSValue tls_client(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double socket;
  size_t name_size, ca_size;
  struct Failure failure;
  if (!number_of(ctx, argv[0], &socket)) return JS_EXCEPTION;
  const char *name = utf8_of(ctx, argv[1], &name_size);
  const char *ca = name == NULL ? NULL : utf8_of(ctx, argv[2], &ca_size);
  struct Connection *connection = ca == NULL ? NULL : new_connection(new_settings());
  if (connection == NULL && ca != NULL) JS_ThrowOutOfMemory(ctx);
  bool is_ready = connection != NULL && prepare(connection, name, ca, ca_size, &failure);
  if (name != NULL) JS_FreeCString(ctx, name);
  if (ca != NULL) JS_FreeCString(ctx, ca);
  if (connection == NULL) return JS_EXCEPTION;
  if (is_ready) {
    connection->fd = (int)socket;
    return connection_handle(ctx, connection);
  }
  disconnect(connection);
  return failure_of(ctx, &failure);
}

/* Whether the last certificate of a PEM text has no end, which the library ignores. */
static bool is_cut_off(const char *text, const mbedtls_x509_crt *chain) {
  int left = 0;
  while ((text = strstr(text, "-----BEGIN CERTIFICATE-----")) != NULL) left++, text++;
  for (; left > 0 && chain != NULL; chain = chain->next) left--;
  return left > 0;
}

/* tlsServer(certificate, key): a server for tlsAccept, or what is wrong with the pair */
static JSValue tls_server(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  static const JSClassDef definition = {.class_name = "TlsServer", .finalizer = finalize_server};
  static const char *protocols[] = {"http/1.1", NULL};
  struct Failure failure = {0};
  size_t certificate_size, key_size;
  JSValue made = JS_EXCEPTION;
  const char *certificate = utf8_of(ctx, argv[0], &certificate_size);
  const char *key = certificate == NULL ? NULL : utf8_of(ctx, argv[1], &key_size);
  struct Settings *settings = key == NULL ? NULL : new_settings();
  if (settings == NULL && key != NULL) JS_ThrowOutOfMemory(ctx);
  if (settings != NULL) {
    int error = configure(settings, MBEDTLS_SSL_IS_SERVER, MBEDTLS_SSL_VERIFY_NONE);
    if (error == 0) error = mbedtls_ssl_conf_alpn_protocols(&settings->config, protocols);
    if (error == 0) error = use_pair(settings, certificate, certificate_size, key, key_size);
    if (error == 0 && is_cut_off(certificate, &settings->own)) error = MBEDTLS_ERR_PEM_NO_HEADER_FOOTER_PRESENT;
    if (error != 0) fail(&failure, "certificate", error), made = JS_NewString(ctx, failure.text);
    else made = handle_of(ctx, &servers, &definition, settings);
    if (error != 0 || JS_IsException(made)) leave(settings);
  }
  if (certificate != NULL) JS_FreeCString(ctx, certificate);
  if (key != NULL) JS_FreeCString(ctx, key);
  return made;
}

/* Milliseconds since 1970 of a time in UTC. */
static double milliseconds_of(const mbedtls_x509_time *time) {
  struct tm parts = {.tm_year = time->year - 1900, .tm_mon = time->mon - 1, .tm_mday = time->day,
                     .tm_hour = time->hour, .tm_min = time->min, .tm_sec = time->sec};
  return (double)timegm(&parts) * 1000;
}

/* tlsValidity(server, name): when the certificate's validity begins and ends, and whether it is for the name */
static JSValue tls_validity(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  struct Settings *settings = JS_GetOpaque2(ctx, argv[0], servers);
  const char *name = settings == NULL ? NULL : utf8_of(ctx, argv[1], &size);
  if (name == NULL) return JS_EXCEPTION;
  bool is_for = trust_name(&settings->trust, name) && trust_is_named(&settings->trust, &settings->own);
  JS_FreeCString(ctx, name);
  const JSValue values[] = {JS_NewFloat64(ctx, milliseconds_of(&settings->own.valid_from)),
                            JS_NewFloat64(ctx, milliseconds_of(&settings->own.valid_to)), JS_NewBool(ctx, is_for)};
  return object_of(ctx, 3, (const char *[]){"validFrom", "validTo", "isForName"}, values);
}

/* tlsAccept(socket, server): a connection, which takes over the socket */
static JSValue tls_accept(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double socket;
  struct Settings *settings = JS_GetOpaque2(ctx, argv[1], servers);
  if (settings == NULL || !number_of(ctx, argv[0], &socket)) return JS_EXCEPTION;
  settings->users++;
  struct Connection *connection = new_connection(settings);
  if (connection == NULL || mbedtls_ssl_setup(&connection->ssl, &settings->config) != 0) {
    disconnect(connection);
    return JS_ThrowOutOfMemory(ctx);
  }
  connection->fd = (int)socket;
  return connection_handle(ctx, connection);
}

/* What a call waits for: "read" or "write"; undefined if it does not wait. */
static JSValue wanted(JSContext *ctx, int result) {
  if (result == MBEDTLS_ERR_SSL_WANT_READ) return JS_NewString(ctx, "read");
  return result == MBEDTLS_ERR_SSL_WANT_WRITE ? JS_NewString(ctx, "write") : JS_UNDEFINED;
}

/* tlsHandshake(connection, judge): undefined once it is complete; otherwise what it waits for, or a failure */
static JSValue tls_handshake(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  struct Failure failure;
  struct Connection *connection = JS_GetOpaque2(ctx, argv[0], connections);
  if (connection == NULL) return JS_EXCEPTION;
  struct Settings *settings = connection->settings;
  settings->trust.ctx = ctx, settings->trust.judge = argv[1], settings->trust.end = now() + VERIFY;
  connection->end = now() + SLICE;
  int result = mbedtls_ssl_handshake(&connection->ssl);
  JSValue waits = wanted(ctx, result);
  if (!JS_IsUndefined(waits)) return waits;
  if (result != 0) {
    fail_handshake(connection, result, &failure);
    return failure_of(ctx, &failure);
  }
  mbedtls_x509_crt_free(&settings->trust.authorities); /* which only a handshake needs */
  return JS_UNDEFINED;
}

/* tlsWrite(connection, bytes), tlsRead(connection, into): the number of bytes, or what it waits for */
static JSValue tls_move(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv, int is_send) {
  (void)self, (void)argc;
  size_t size;
  struct Connection *connection = JS_GetOpaque2(ctx, argv[0], connections);
  uint8_t *bytes = connection == NULL ? NULL : JS_GetUint8Array(ctx, &size, argv[1]);
  if (bytes == NULL) return JS_EXCEPTION;
  connection->end = now() + SLICE;
  mbedtls_ssl_context *ssl = &connection->ssl;
  int result = is_send ? mbedtls_ssl_write(ssl, bytes, size) : mbedtls_ssl_read(ssl, bytes, size);
  JSValue waits = wanted(ctx, result);
  return JS_IsUndefined(waits) ? JS_NewInt32(ctx, outcome_of(connection, result, is_send)) : waits;
}

/* tlsEnd(connection): closes the connection and its socket; the object cannot be used again */
static JSValue tls_end(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  struct Connection *connection = JS_GetOpaque2(ctx, argv[0], connections);
  if (connection == NULL) return JS_EXCEPTION;
  JS_SetOpaque(argv[0], NULL);
  part(connection);
  return JS_UNDEFINED;
}

const JSCFunctionListEntry tls_functions[] = {
    JS_CFUNC_DEF("tlsClient", 3, tls_client),
    JS_CFUNC_DEF("tlsServer", 2, tls_server),
    JS_CFUNC_DEF("tlsValidity", 2, tls_validity),
    JS_CFUNC_DEF("tlsAccept", 2, tls_accept),
    JS_CFUNC_DEF("tlsHandshake", 2, tls_handshake),
    JS_CFUNC_MAGIC_DEF("tlsWrite", 2, tls_move, true),
    JS_CFUNC_MAGIC_DEF("tlsRead", 2, tls_move, false),
    JS_CFUNC_DEF("tlsEnd", 1, tls_end),
};
const int tls_functions_count = sizeof tls_functions / sizeof *tls_functions;
