/*
 * One executable with several programs: an engine, their scripts, and the global `host`, through which they reach the
 * machine. The first program is the CNI plugin, which uses less of the engine; the first argument names another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "host.h"
#include "scripts.h"

#define MEMORY_LIMIT ((size_t)256 << 20)
/* In one call, collecting garbage costs more time than the memory is worth, unless there is much of it. */
#define GC_THRESHOLD ((size_t)64 << 20)
/* For programs that keep running: at first; later, one and a half times what is in use. */
#define LASTING_GC_THRESHOLD ((size_t)1 << 20)
/* A separate stack, so that the caller's RLIMIT_STACK does not matter. The guard fits every page size. */
#define STACK_SIZE ((size_t)8 << 20)
#define STACK_GUARD ((size_t)64 << 10)
/* The part of the stack that is left for C functions that a script calls, above all those of TLS. */
#define STACK_OF_C ((size_t)256 << 10)
/* Bytes that a child process may print; it is killed if it prints more. */
#define OUTPUT_LIMIT ((size_t)4 << 20)
/* Milliseconds to wait for the end of a process that was killed. */
#define AFTER_KILL 500

static const char REPLACEMENT[] = "\xef\xbf\xbd"; /* U+FFFD */
static double started;
static const struct Script *program = programs;
static char **arguments;

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int until(double then) {
  double left = then - now();
  return left > 0 ? left < INT_MAX - 1 ? (int)left + 1 : INT_MAX : 0;
}

/* An argument of a system call; -1 if a long cannot hold it, because the conversion would be undefined. */
static long integer_of(double number) {
  return number > -0x1p62 && number < 0x1p62 ? (long)number : -1;
}

bool number_of(JSContext *ctx, JSValueConst value, double *number) {
  if (JS_IsNumber(value)) return JS_ToFloat64(ctx, number, value) == 0;
  JS_ThrowTypeError(ctx, "not a number");
  return false;
}

const char *utf8_of(JSContext *ctx, JSValueConst value, size_t *size) {
  if (!JS_IsString(value)) return JS_ThrowTypeError(ctx, "not a string"), NULL;
  char *text = (char *)JS_ToCStringLen(ctx, size, value);
  /* The engine encodes half a surrogate pair like any other character, in a copy: only ASCII is not copied. */
  char *end = text + (text == NULL ? 0 : *size);
  for (char *at = text; at != NULL && (at = memchr(at, 0xed, (size_t)(end - at))) != NULL; at++)
    if ((uint8_t)at[1] >= 0xa0) memcpy(at, REPLACEMENT, 3);
  return text;
}

/* Length of the next sequence if it is well-formed; negated, of what one U+FFFD replaces: WHATWG Encoding. */
static int sequence(const uint8_t *at, const uint8_t *end) {
  uint8_t first = at[0];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return -1;
  int length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (int i = 1; i < length; i++, low = 0x80, high = 0xbf)
    if (at + i >= end || at[i] < low || at[i] > high) return -i;
  return length;
}

/* Decodes UTF-8. */
static JSValue text_of(JSContext *ctx, const uint8_t *at, size_t size) {
  const uint8_t *end = at + size, *bad = at;
  for (int length; bad < end && (length = sequence(bad, end)) > 0;) bad += length;
  if (bad == end) return JS_NewStringLen(ctx, (const char *)at, size);
  char *repaired = js_malloc(ctx, size * 3), *into = repaired;
  if (repaired == NULL) return JS_EXCEPTION;
  while (at < end) {
    int length = sequence(at, end);
    size_t used = (size_t)abs(length), made = length > 0 ? used : 3;
    memcpy(into, length > 0 ? (const void *)at : REPLACEMENT, made);
    at += used, into += made;
  }
  JSValue text = JS_NewStringLen(ctx, repaired, (size_t)(into - repaired));
  js_free(ctx, repaired);
  return text;
}

JSValue object_of(JSContext *ctx, int count, const char **names, const JSValue *values) {
  /* JS_NewObjectFrom, in this version of the engine, changes a shape that other empty objects share. */
  JSValue object = JS_NewObject(ctx);
  bool is_whole = !JS_IsException(object);
  for (int i = 0; i < count; i++) {
    if (!is_whole || JS_IsException(values[i])) is_whole = false, JS_FreeValue(ctx, values[i]);
    else is_whole = JS_DefinePropertyValueStr(ctx, object, names[i], values[i], JS_PROP_C_W_E) >= 0;
  }
  if (is_whole) return object;
  JS_FreeValue(ctx, object);
  return JS_EXCEPTION;
}

/*
 * System calls: the name, how arguments are passed to the kernel, the kernel's name. `n` is a number, `p` a string
 * without NUL, `b` bytes and their length, `a` bytes and a pointer to their length, `s` 8 bytes, `x` 256 bytes, for a
 * struct statx or statfs; `d` and `0` pass AT_FDCWD and 0, and take no argument.
 */
#define SYSTEM_CALLS(CALL)                  \
  CALL(open, "dpnn", SYS_openat)            \
  CALL(read, "nb", SYS_read)                \
  CALL(write, "nb", SYS_write)              \
  CALL(seek, "nnn", SYS_lseek)              \
  CALL(close, "n", SYS_close)               \
  CALL(unlink, "dpn", SYS_unlinkat)         \
  CALL(access, "dp0", SYS_faccessat)        \
  CALL(statx, "dpnnx", SYS_statx)           \
  CALL(setns, "nn", SYS_setns)              \
  CALL(socket, "nnn", SYS_socket)           \
  CALL(connect, "nb", SYS_connect)          \
  CALL(bind, "nb", SYS_bind)                \
  CALL(listen, "nn", SYS_listen)            \
  CALL(accept, "n00n", SYS_accept4)         \
  CALL(setsockopt, "nnnb", SYS_setsockopt)  \
  CALL(send, "nbn00", SYS_sendto)           \
  CALL(receive, "nbn00", SYS_recvfrom)      \
  CALL(exit, "n", SYS_exit_group)
/* System calls that the plugin does not use. */
#define LASTING_CALLS(CALL)                        \
  CALL(closeRange, "nn0", SYS_close_range)         \
  CALL(pread, "nbn", SYS_pread64)                  \
  CALL(getdents, "nb", SYS_getdents64)             \
  CALL(fsync, "n", SYS_fsync)                      \
  CALL(fchmod, "nn", SYS_fchmod)                   \
  CALL(pipe, "sn", SYS_pipe2)                      \
  CALL(accessAs, "dpn", SYS_faccessat)             \
  CALL(statfs, "px", SYS_statfs)                   \
  CALL(mkdir, "dpn", SYS_mkdirat)                  \
  CALL(symlink, "pdp", SYS_symlinkat)              \
  CALL(link, "dpdp0", SYS_linkat)                  \
  CALL(rename, "dpdp", SYS_renameat)               \
  CALL(renameAs, "dpdpn", SYS_renameat2)           \
  CALL(readlink, "dpb", SYS_readlinkat)            \
  CALL(chown, "dpnn0", SYS_fchownat)               \
  CALL(chdir, "p", SYS_chdir)                      \
  CALL(inotifyInit, "n", SYS_inotify_init1)        \
  CALL(inotifyAdd, "npn", SYS_inotify_add_watch)   \
  CALL(inotifyRemove, "nn", SYS_inotify_rm_watch)  \
  CALL(getsockopt, "nnna", SYS_getsockopt)         \
  CALL(getsockname, "na", SYS_getsockname)         \
  CALL(getrandom, "bn", SYS_getrandom)             \
  CALL(sigprocmask, "ns0n", SYS_rt_sigprocmask)    \
  CALL(signalfd, "nbn", SYS_signalfd4)             \
  CALL(prctl, "nn", SYS_prctl)                     \
  CALL(kill, "nn", SYS_kill)                       \
  CALL(wait, "nsn0", SYS_wait4)

#define ARGUMENTS 4 /* at most */
enum {
#define INDEX(name, kinds, number) CALL_##name,
  SYSTEM_CALLS(INDEX) LASTING_CALLS(INDEX)
};
static const struct { const char *kinds; long number; } system_calls[] = {
#define ROW(name, kinds, number) {kinds, number},
    SYSTEM_CALLS(ROW) LASTING_CALLS(ROW)
};

static JSValue host_system_call(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv, int index) {
  (void)self, (void)argc;
  long native[6] = {0}, *into = native, result = 0;
  const char *texts[2] = {NULL, NULL}, **text = texts;
  uint32_t length;
  bool is_whole = true;
  for (const char *kind = system_calls[index].kinds; *kind != 0 && is_whole; kind++) {
    size_t size;
    double number;
    uint8_t *bytes;
    switch (*kind) {
    case 'd': *into++ = AT_FDCWD; break;
    case '0': *into++ = 0; break;
    case 'n':
      is_whole = number_of(ctx, *argv++, &number);
      if (is_whole) *into++ = integer_of(number);
      break;
    case 'p':
      is_whole = (*text = utf8_of(ctx, *argv++, &size)) != NULL;
      if (is_whole && strlen(*text) != size) result = -EINVAL;
      *into++ = (long)*text++;
      break;
    default: /* bytes */
      is_whole = (bytes = JS_GetUint8Array(ctx, &size, *argv++)) != NULL;
      *into++ = (long)bytes;
      length = (uint32_t)size;
      if (*kind == 'b') *into++ = (long)size;
      else if (*kind == 'a') *into++ = (long)&length;
      else if (size < (*kind == 's' ? 8 : 256)) result = -EFAULT;
    }
  }
  if (is_whole && result == 0) {
    /* A descriptor is closed even if close was interrupted. */
    do result = syscall(system_calls[index].number, native[0], native[1], native[2], native[3], native[4], native[5]);
    while (result < 0 && errno == EINTR && index != CALL_close);
    if (result < 0) result = -errno;
  }
  for (int i = 0; i < 2; i++)
    if (texts[i] != NULL) JS_FreeCString(ctx, texts[i]);
  return is_whole ? JS_NewInt64(ctx, result) : JS_EXCEPTION;
}

/* poll(descriptor, events, milliseconds) */
static JSValue host_poll(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double descriptor, events, milliseconds;
  if (!number_of(ctx, argv[0], &descriptor) || !number_of(ctx, argv[1], &events) ||
      !number_of(ctx, argv[2], &milliseconds))
    return JS_EXCEPTION;
  struct pollfd one = {.fd = (int)integer_of(descriptor), .events = (short)integer_of(events)};
  double end = now() + milliseconds;
  int ready;
  do ready = poll(&one, one.fd >= 0, until(end));
  while (ready < 0 && errno == EINTR);
  return JS_NewInt32(ctx, ready < 0 ? -errno : ready == 0 ? 0 : one.revents);
}

/* pollAll(descriptors, milliseconds): descriptors is an array of struct pollfd, and `revents` is set in it */
static JSValue host_poll_all(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  double milliseconds;
  uint8_t *bytes = JS_GetUint8Array(ctx, &size, argv[0]);
  if (bytes == NULL || !number_of(ctx, argv[1], &milliseconds)) return JS_EXCEPTION;
  if ((uintptr_t)bytes % _Alignof(struct pollfd) != 0) return JS_NewInt32(ctx, -EFAULT);
  double end = now() + milliseconds;
  int ready;
  do ready = poll((struct pollfd *)bytes, (nfds_t)(size / sizeof(struct pollfd)), until(end));
  while (ready < 0 && errno == EINTR);
  return JS_NewInt32(ctx, ready < 0 ? -errno : ready);
}

static JSValue host_elapsed(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  return JS_NewFloat64(ctx, now() - started);
}

static JSValue host_env(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  const char *name = utf8_of(ctx, argv[0], &size);
  if (name == NULL) return JS_EXCEPTION;
  const char *value = strlen(name) == size ? getenv(name) : NULL;
  JS_FreeCString(ctx, name);
  return value == NULL ? JS_UNDEFINED : text_of(ctx, (const uint8_t *)value, strlen(value));
}

/* An array of the strings in a NULL-terminated list. */
static JSValue array_of(JSContext *ctx, char **texts) {
  JSValue made = JS_NewArray(ctx);
  for (uint32_t i = 0; texts[i] != NULL && !JS_IsException(made); i++) {
    JSValue text = text_of(ctx, (const uint8_t *)texts[i], strlen(texts[i]));
    if (!JS_IsException(text) && JS_SetPropertyUint32(ctx, made, i, text) >= 0) continue;
    JS_FreeValue(ctx, made), made = JS_EXCEPTION;
  }
  return made;
}

static JSValue host_args(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  return array_of(ctx, arguments);
}

static JSValue host_environment(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  return array_of(ctx, environ);
}

static JSValue host_limit_memory(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double bytes;
  if (!number_of(ctx, argv[0], &bytes)) return JS_EXCEPTION;
  limit_memory((size_t)integer_of(bytes));
  return JS_UNDEFINED;
}

static JSValue host_is_equal(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size, other_size;
  const uint8_t *bytes = JS_GetUint8Array(ctx, &size, argv[0]);
  const uint8_t *others = bytes == NULL ? NULL : JS_GetUint8Array(ctx, &other_size, argv[1]);
  if (others == NULL) return JS_EXCEPTION;
  return JS_NewBool(ctx, size == other_size && memcmp(bytes, others, size) == 0);
}

static JSValue host_fork(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  pid_t child = fork();
  return JS_NewInt32(ctx, child < 0 ? -errno : child);
}

/* A promise that was rejected, and whose rejection is not handled yet. */
struct Rejection {
  JSValue promise, reason;
  struct Rejection *next;
};
static struct Rejection *rejections;

static void track_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool is_handled, void *opaque) {
  (void)opaque;
  struct Rejection **at = &rejections, *found;
  while (*at != NULL && JS_VALUE_GET_PTR((*at)->promise) != JS_VALUE_GET_PTR(promise)) at = &(*at)->next;
  if (is_handled && (found = *at) != NULL) {
    *at = found->next;
    JS_FreeValue(ctx, found->promise), JS_FreeValue(ctx, found->reason), js_free(ctx, found);
  } else if (!is_handled && (*at = js_malloc(ctx, sizeof **at)) != NULL)
    **at = (struct Rejection){JS_DupValue(ctx, promise), JS_DupValue(ctx, reason), NULL};
}

/* Runs the pending jobs of promises. Throws the reason of a rejection that is still not handled. */
static JSValue host_run_jobs(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  JSContext *same;
  int ran;
  do ran = JS_ExecutePendingJob(JS_GetRuntime(ctx), &same);
  while (ran > 0);
  if (ran < 0) return JS_EXCEPTION;
  return rejections == NULL ? JS_UNDEFINED : JS_Throw(ctx, JS_DupValue(ctx, rejections->reason));
}

static JSValue host_encode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  const char *text = utf8_of(ctx, argv[0], &size);
  if (text == NULL) return JS_EXCEPTION;
  JSValue bytes = JS_NewUint8ArrayCopy(ctx, (const uint8_t *)text, size);
  JS_FreeCString(ctx, text);
  return bytes;
}

static JSValue host_decode(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  const uint8_t *bytes = JS_GetUint8Array(ctx, &size, argv[0]);
  return bytes == NULL ? JS_EXCEPTION : text_of(ctx, bytes, size);
}

/* The output of a child process, through a pipe. */
struct Output {
  int fd;
  uint8_t *bytes;
  size_t size, room;
};

/* Reads once; 0 at the end, negated errno. The engine's memory limit applies, too. */
static ssize_t take(JSContext *ctx, struct Output *output) {
  if (output->size >= OUTPUT_LIMIT) return -EFBIG;
  if (output->size == output->room) {
    uint8_t *more = js_realloc_rt(JS_GetRuntime(ctx), output->bytes, output->room * 2 + 65536);
    if (more == NULL) return -ENOMEM;
    output->bytes = more, output->room = output->room * 2 + 65536;
  }
  ssize_t taken = read(output->fd, output->bytes + output->size, output->room - output->size);
  if (taken > 0) output->size += (size_t)taken;
  return taken < 0 ? -errno : taken;
}

/*
 * Waits for a child that has closed its outputs, or kills its process group: at once after an error, else when the time
 * is over. Returns a negated errno and the child's status. A system call on a broken disk may last forever in spite of
 * SIGKILL, so the wait ends soon after it.
 */
static int reap(pid_t child, int error, double end, int *status) {
  double killed = 0;
  for (struct timespec pause = {0, 20000};; pause.tv_nsec *= pause.tv_nsec < 8000000 ? 2 : 1) {
    if (error == 0 && until(end) == 0) error = -ETIMEDOUT;
    if (error != 0) kill(-child, SIGKILL), kill(child, SIGKILL);
    if (error != 0 && killed == 0) killed = now();
    pid_t ended = waitpid(child, status, WNOHANG);
    if (ended < 0 && errno != EINTR) error = -errno;
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    if (killed != 0 && until(killed + AFTER_KILL) == 0) break;
    if (ended == 0) nanosleep(&pause, NULL);
  }
  return error;
}

/* Reads a child's outputs until it ends, or kills it when the time is over. Returns a negated errno and its status. */
static int await_child(JSContext *ctx, pid_t child, struct Output *outputs, int count, double end, int *status) {
  int error = 0;
  for (int open = count; open > 0 && error == 0;) {
    struct pollfd fds[2];
    for (int i = 0; i < count; i++) fds[i] = (struct pollfd){.fd = outputs[i].fd, .events = POLLIN};
    int ready = poll(fds, (nfds_t)count, until(end));
    if (ready == 0) error = -ETIMEDOUT;
    if (ready < 0 && errno != EINTR) error = -errno;
    for (int i = 0; i < count && ready > 0; i++) {
      ssize_t taken = fds[i].revents == 0 ? 1 : take(ctx, &outputs[i]);
      if (taken > 0 || taken == -EINTR) continue;
      if (taken < 0) error = (int)taken;
      close(outputs[i].fd), outputs[i].fd = -1, open--;
    }
  }
  error = reap(child, error, end, status);
  for (int i = 0; i < count; i++)
    if (outputs[i].fd >= 0) close(outputs[i].fd);
  return error;
}

/* resolve(name, family): it may take long, since getaddrinfo has no deadline. */
static JSValue host_resolve(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  int family;
  if (JS_ToInt32(ctx, &family, argv[1]) < 0) return JS_EXCEPTION;
  const char *name = utf8_of(ctx, argv[0], &size);
  if (name == NULL) return JS_EXCEPTION;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = family}, *found = NULL;
  if (strlen(name) != size || getaddrinfo(name, NULL, &hints, &found) != 0) found = NULL;
  JS_FreeCString(ctx, name);
  JSValue made = JS_NewArray(ctx);
  uint32_t count = 0;
  char text[INET6_ADDRSTRLEN + 20];
  for (struct addrinfo *each = found; each != NULL && !JS_IsException(made); each = each->ai_next) {
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0) continue;
    if (JS_SetPropertyUint32(ctx, made, count++, JS_NewString(ctx, text)) >= 0) continue;
    JS_FreeValue(ctx, made), made = JS_EXCEPTION;
  }
  if (found != NULL) freeaddrinfo(found);
  return made;
}

/* A NULL-terminated list of strings, the first left free; false if it threw. Free it with free_texts in either case. */
static bool texts_of(JSContext *ctx, JSValueConst list, const char ***texts, int *error) {
  int64_t count;
  if (JS_GetLength(ctx, list, &count) < 0) return false;
  if ((*texts = js_calloc(ctx, (size_t)count + 2, sizeof **texts)) == NULL) return false;
  for (int64_t i = 0; i < count; i++) {
    size_t size;
    JSValue each = JS_GetPropertyInt64(ctx, list, i);
    (*texts)[i + 1] = JS_IsException(each) ? NULL : utf8_of(ctx, each, &size);
    JS_FreeValue(ctx, each);
    if ((*texts)[i + 1] == NULL) return false;
    if (strlen((*texts)[i + 1]) != size) *error = -EINVAL;
  }
  return true;
}

static void free_texts(JSContext *ctx, const char **texts) {
  if (texts == NULL) return;
  for (const char **each = texts + 1; *each != NULL; each++) JS_FreeCString(ctx, *each);
  js_free(ctx, texts);
}

/* Runs a program with a memory file as its input; negated errno. */
static int run(JSContext *ctx, char **args, const char *input, size_t size, char **environment, double end,
               struct Output *outputs, int *status) {
  int in = memfd_create("input", MFD_CLOEXEC), out[2][2] = {{-1, -1}, {-1, -1}}, error = 0;
  pid_t child = -1;
  for (size_t given = 0; in >= 0 && given < size && error == 0;) {
    ssize_t written = write(in, input + given, size - given);
    if (written > 0) given += (size_t)written;
    else if (errno != EINTR) error = -errno;
  }
  if (error == 0 &&
      (in < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(out[0], O_CLOEXEC) < 0 || pipe2(out[1], O_CLOEXEC) < 0))
    error = -errno;
  if (error == 0) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual, none;
    sigemptyset(&none);
    sigemptyset(&usual), sigaddset(&usual, SIGPIPE), sigaddset(&usual, SIGXFSZ);
    posix_spawn_file_actions_init(&actions), posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    if (posix_spawn_file_actions_adddup2(&actions, in, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, out[0][1], 1) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, out[1][1], 2) != 0)
      error = -ENOMEM;
    else error = -posix_spawn(&child, args[0], &actions, &attributes, args, environment);
    posix_spawn_file_actions_destroy(&actions), posix_spawnattr_destroy(&attributes);
  }
  if (in >= 0) close(in);
  for (int i = 0; i < 2; i++) {
    if (out[i][1] >= 0) close(out[i][1]);
    outputs[i].fd = out[i][0];
    if (error != 0 && out[i][0] >= 0) close(out[i][0]);
  }
  return error != 0 ? error : await_child(ctx, child, outputs, 2, end, status);
}

/* run(program, args, input, env, milliseconds) */
static JSValue host_run(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  const char *program = NULL, *input = NULL, **args = NULL, **environment = NULL;
  size_t program_size, size;
  double milliseconds;
  int error = 0, status = 0;
  struct Output outputs[2] = {{.fd = -1}, {.fd = -1}};
  JSValue made = JS_EXCEPTION;
  if ((program = utf8_of(ctx, argv[0], &program_size)) != NULL && texts_of(ctx, argv[1], &args, &error) &&
      (input = utf8_of(ctx, argv[2], &size)) != NULL && texts_of(ctx, argv[3], &environment, &error) &&
      number_of(ctx, argv[4], &milliseconds)) {
    if (strlen(program) != program_size) error = -EINVAL;
    double end = now() + milliseconds;
    args[0] = program;
    if (error == 0) error = run(ctx, (char **)args, input, size, (char **)environment + 1, end, outputs, &status);
    const char *names[] = {"status", "signal", "stdout", "stderr", "error"};
    JSValue values[] = {
        error == 0 && WIFEXITED(status) ? JS_NewInt32(ctx, WEXITSTATUS(status)) : JS_NULL,
        error == 0 && WIFSIGNALED(status) ? JS_NewInt32(ctx, WTERMSIG(status)) : JS_UNDEFINED,
        text_of(ctx, outputs[0].bytes, outputs[0].size),
        text_of(ctx, outputs[1].bytes, outputs[1].size),
        JS_NewInt32(ctx, error),
    };
    made = object_of(ctx, 5, names, values);
  }
  if (program != NULL) JS_FreeCString(ctx, program);
  if (input != NULL) JS_FreeCString(ctx, input);
  free_texts(ctx, args), free_texts(ctx, environment);
  js_free(ctx, outputs[0].bytes), js_free(ctx, outputs[1].bytes);
  return made;
}

static const struct Script *find(const struct Script *among, const char *name) {
  while (among->name != NULL && strcmp(among->name, name) != 0) among++;
  return among->name == NULL ? NULL : among;
}

/* Runs an embedded script; returns its completion value. */
static JSValue evaluate(JSContext *ctx, const struct Script *script) {
  JSValue code = JS_ReadObject(ctx, script->bytecode, script->size, JS_READ_OBJ_BYTECODE);
  return JS_IsException(code) ? code : JS_EvalFunction(ctx, code);
}

static JSValue host_load(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t size;
  const char *name = utf8_of(ctx, argv[0], &size);
  if (name == NULL) return JS_EXCEPTION;
  const struct Script *script = find(scripts, name);
  JSValue exports = script == NULL ? JS_ThrowReferenceError(ctx, "no script %s", name) : evaluate(ctx, script);
  JS_FreeCString(ctx, name);
  return exports;
}

static const JSCFunctionListEntry functions[] = {
#define ENTRY(name, kinds, number) JS_CFUNC_MAGIC_DEF(#name, ARGUMENTS, host_system_call, CALL_##name),
    SYSTEM_CALLS(ENTRY)
    JS_CFUNC_DEF("poll", 3, host_poll),
    JS_CFUNC_DEF("pollAll", 2, host_poll_all),
    JS_CFUNC_DEF("elapsed", 0, host_elapsed),
    JS_CFUNC_DEF("env", 1, host_env),
    JS_CFUNC_DEF("encode", 1, host_encode),
    JS_CFUNC_DEF("decode", 1, host_decode),
    JS_CFUNC_DEF("run", 5, host_run),
};

/* Functions that the plugin does not use. */
static const JSCFunctionListEntry lasting_functions[] = {
    LASTING_CALLS(ENTRY)
    JS_CFUNC_DEF("args", 0, host_args),
    JS_CFUNC_DEF("environment", 0, host_environment),
    JS_CFUNC_DEF("isEqual", 2, host_is_equal),
    JS_CFUNC_DEF("fork", 0, host_fork),
    JS_CFUNC_DEF("limitMemory", 1, host_limit_memory),
    JS_CFUNC_DEF("resolve", 2, host_resolve),
    JS_CFUNC_DEF("load", 1, host_load),
    JS_CFUNC_DEF("runJobs", 0, host_run_jobs),
};

/*
 * Ends the process after an error that the scripts did not catch. A CNI runtime gets a CNI error. If memory is short,
 * there may be no exception and no text.
 */
static _Noreturn void give_up(JSContext *ctx) {
  const char *text = NULL, *quoted = NULL;
  if (ctx != NULL) {
    JSValue error = JS_GetException(ctx);
    text = JS_IsNull(error) ? NULL : JS_ToCString(ctx, error);
    JSValue string = text == NULL ? JS_NULL : JS_NewString(ctx, text);
    JSValue json = JS_IsString(string) ? JS_JSONStringify(ctx, string, JS_UNDEFINED, JS_UNDEFINED) : JS_NULL;
    quoted = JS_IsString(json) ? JS_ToCString(ctx, json) : NULL;
  }
  dprintf(2, "linkerd-cni: error: %s\n", quoted == NULL ? "out of memory" : text);
  if (getenv("CNI_COMMAND") == NULL) _exit(1);
  dprintf(1, "{\"cniVersion\":\"1.0.0\",\"code\":102,\"msg\":%s,\"details\":\"linkerd-cni ended unexpectedly\"}\n",
          quoted == NULL ? "\"out of memory\"" : quoted);
  _exit(1);
}

/* Adds what the other programs need and the plugin does not. */
static bool add_lasting(JSContext *ctx, JSValueConst host) {
  JSRuntime *runtime = JS_GetRuntime(ctx);
  JS_SetGCThreshold(runtime, LASTING_GC_THRESHOLD);
  JS_SetHostPromiseRejectionTracker(runtime, track_rejection, NULL);
  return !JS_AddIntrinsicAToB(ctx) && !JS_AddIntrinsicProxy(ctx) && !JS_AddIntrinsicPromise(ctx) && !JS_AddIntrinsicWeakRef(ctx) &&
         JS_SetPropertyFunctionList(ctx, host, lasting_functions,
                                    sizeof lasting_functions / sizeof *lasting_functions) >= 0 &&
         JS_SetPropertyFunctionList(ctx, host, tls_functions, tls_functions_count) >= 0 &&
         JS_SetPropertyFunctionList(ctx, host, key_functions, key_functions_count) >= 0;
}

static _Noreturn void run_main(void) {
  bool is_plugin = program == programs;
  JSRuntime *runtime = new_runtime();
  if (runtime == NULL) give_up(NULL);
  if (is_plugin) JS_SetMemoryLimit(runtime, MEMORY_LIMIT);
  else limit_memory(MEMORY_LIMIT);
  JS_SetGCThreshold(runtime, GC_THRESHOLD);
  JS_SetMaxStackSize(runtime, STACK_SIZE - STACK_GUARD - STACK_OF_C);
  JSContext *ctx = JS_NewContextRaw(runtime);
  if (ctx == NULL || JS_AddIntrinsicBaseObjects(ctx) || JS_AddIntrinsicDate(ctx) || JS_AddIntrinsicRegExp(ctx) ||
      JS_AddIntrinsicJSON(ctx) || JS_AddIntrinsicMapSet(ctx) || JS_AddIntrinsicTypedArrays(ctx))
    give_up(NULL);
  JSValue global = JS_GetGlobalObject(ctx), host = JS_NewObject(ctx);
  if (JS_IsException(host) ||
      JS_SetPropertyFunctionList(ctx, host, functions, sizeof functions / sizeof *functions) < 0 ||
      (!is_plugin && !add_lasting(ctx, host)) ||
      JS_SetPropertyStr(ctx, global, "host", host) < 0)
    give_up(ctx);
  if (!JS_IsException(evaluate(ctx, program)))
    JS_ThrowInternalError(ctx, "the main script ended without an exit status");
  give_up(ctx);
}

/* Continues in a function on another stack; does not return. */
static _Noreturn void switch_stack(uint8_t *top, void (*then)(void)) {
#if defined(__SANITIZE_ADDRESS__)
  (void)top; /* the sanitizer knows only its own stacks */
  then();
#elif defined(__x86_64__)
  __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tcall *%1" ::"r"(top), "r"(then) : "memory");
#elif defined(__aarch64__)
  __asm__ volatile("mov sp, %0\n\tmov x29, xzr\n\tblr %1" ::"r"(top), "r"(then) : "memory");
#endif
  __builtin_unreachable();
}

/* The usual limit, 1,024, is for programs that call select(); silent clients could use up that many descriptors. */
static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void end_at_once(int number) {
  (void)number;
  _exit(0);
}

static _Noreturn void refuse(const char *name) {
  dprintf(2, "linkerd-cni: error: no program \"%.100s\"; known are ", name);
  for (const struct Script *known = programs + 1; known->name != NULL; known++)
    dprintf(2, "%s%s", known->name, known[1].name == NULL ? "\n" : ", ");
  _exit(2);
}

int main(int argc, char **argv) {
  started = now();
  /* The kernel does not deliver a signal to a container's first process unless it has a handler. */
  if (getpid() == 1) signal(SIGTERM, end_at_once), signal(SIGINT, end_at_once);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* write then fails if a file exceeds the caller's limit */
  signal(SIGCHLD, SIG_DFL); /* if the caller ignored it, the status of child processes would be lost */
  /* Files opened later must not become a standard input or output that the caller closed. */
  struct pollfd standard[3] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
  poll(standard, 3, 0);
  for (int i = 0; i < 3; i++)
    if ((standard[i].revents & POLLNVAL) != 0 && open("/dev/null", O_RDWR) < 0) _exit(1);
  if (argc > 1 && programs[1].name != NULL && getenv("CNI_COMMAND") == NULL) {
    program = find(programs + 1, argv[1]);
    if (program == NULL) refuse(argv[1]);
    arguments = argv + 2;
    raise_descriptor_limit();
  }
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  uint8_t *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, STACK_GUARD, PROT_NONE) != 0) give_up(NULL);
  switch_stack(stack + STACK_SIZE, run_main);
}
