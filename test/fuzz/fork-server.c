/*
 * Answers many calls of the plugin with one start of its sanitized executable, which takes twenty times as long as a
 * call. It is preloaded: when the plugin first reads its environment, it has done nothing of the call yet, so each call
 * continues from there in a separate process, with its own environment, input and outputs.
 *
 * Read from descriptor 3: lengths (uint32) of a path, of an environment as execve(2) knows it, and of an input, then
 * these. With a path the call is a real start of that executable. Written to descriptor 4: status as wait(2) gives it
 * and the lengths of both outputs (uint32), then these.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 3, ANSWERS = 4, TIMEOUT_SECONDS = 60 };

extern char **environ;
static volatile pid_t child;

/* Ends if the other side is gone. */
static void transfer(int fd, void *bytes, size_t size, int is_read) {
  for (size_t done = 0; done < size;) {
    ssize_t moved = is_read ? read(fd, (char *)bytes + done, size - done) : write(fd, (char *)bytes + done, size - done);
    if (moved <= 0) _exit(0);
    done += (size_t)moved;
  }
}

static int file_of(const void *bytes, size_t size) {
  int fd = memfd_create("fuzz", 0);
  if (fd < 0) abort();
  transfer(fd, (void *)bytes, size, 0);
  lseek(fd, 0, SEEK_SET);
  return fd;
}

/* Reads a child's output. */
static char *content_of(int fd, uint32_t *size) {
  struct stat found;
  if (fstat(fd, &found) != 0) abort();
  *size = (uint32_t)found.st_size;
  char *bytes = malloc(*size + 1);
  if (bytes == NULL || pread(fd, bytes, *size, 0) != (ssize_t)*size) abort();
  close(fd);
  return bytes;
}

static void give_up(int number) {
  (void)number;
  kill(child, SIGKILL);
}

/* Returns in the process of a call. */
static void serve(void) {
  struct sigaction on_timeout = {.sa_handler = give_up, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &on_timeout, NULL);
  for (;;) {
    uint32_t lengths[3];
    transfer(REQUESTS, lengths, sizeof lengths, 1);
    char *texts[3];
    for (int i = 0; i < 3; i++) {
      if ((texts[i] = malloc(lengths[i] + 1)) == NULL) abort();
      transfer(REQUESTS, texts[i], lengths[i], 1);
      texts[i][lengths[i]] = 0;
    }
    int files[3] = {file_of(texts[2], lengths[2]), file_of("", 0), file_of("", 0)};
    if ((child = fork()) == 0) {
      size_t count = 0;
      char **variables = malloc(sizeof *variables * (lengths[1] / 2 + 2));
      if (variables == NULL) abort();
      for (char *at = texts[1]; at < texts[1] + lengths[1]; at += strlen(at) + 1) variables[count++] = at;
      variables[count] = NULL;
      for (int i = 0; i < 3; i++) dup2(files[i], i), close(files[i]);
      close(REQUESTS), close(ANSWERS);
      if (lengths[0] > 0) execve(texts[0], (char *[]){texts[0], NULL}, variables), abort();
      environ = variables;
      return;
    }
    int status = 0;
    alarm(TIMEOUT_SECONDS);
    if (child < 0 || waitpid(child, &status, 0) < 0) abort();
    alarm(0);
    for (int i = 0; i < 3; i++) free(texts[i]);
    close(files[0]);
    uint32_t answer[3] = {(uint32_t)status};
    char *outputs[2] = {content_of(files[1], &answer[1]), content_of(files[2], &answer[2])};
    transfer(ANSWERS, answer, sizeof answer, 0);
    for (int i = 0; i < 2; i++) transfer(ANSWERS, outputs[i], answer[i + 1], 0), free(outputs[i]);
  }
}

char *getenv(const char *name) {
  static int is_serving;
  if (!is_serving && strcmp(name, "CNI_COMMAND") == 0) is_serving = 1, serve();
  size_t size = strlen(name);
  for (char **at = environ; at != NULL && *at != NULL; at++)
    if (strncmp(*at, name, size) == 0 && (*at)[size] == '=') return *at + size + 1;
  return NULL;
}
