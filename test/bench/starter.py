"""
Starts programs and measures how long they take, from the start of the process to its end. A process of its own does it:
starting one from Node copies Node's page tables, which takes longer than the plugin, and holds up the next start.

A line of standard input is a JSON array of {"program", "env", "input"}, which are started at once; a line of standard
output answers with an array of {"tookMs", "status", "stdout", "stderr"} in the same order.
"""
import json
import os
import sys
import time


def in_memory(text=""):
    descriptor = os.memfd_create("stdio")
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def content(descriptor):
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, encoding="utf8", errors="replace") as file:
        return file.read()


for line in sys.stdin:
    calls = json.loads(line)
    descriptors = [(in_memory(call["input"]), in_memory(), in_memory()) for call in calls]
    actions = [[(os.POSIX_SPAWN_DUP2, one, at) for at, one in enumerate(three)] for three in descriptors]
    begins, ends = {}, {}
    for call, files in zip(calls, actions):
        begin = time.perf_counter()
        pid = os.posix_spawn(call["program"], [call["program"]], call["env"], file_actions=files)
        begins[pid] = begin
    while len(ends) < len(calls):
        pid, status = os.wait()
        ends[pid] = ((time.perf_counter() - begins[pid]) * 1000, os.waitstatus_to_exitcode(status))
    answers = []
    for pid, (stdin, stdout, stderr) in zip(begins, descriptors):
        os.close(stdin)
        took, status = ends[pid]
        answers.append({"tookMs": took, "status": status, "stdout": content(stdout), "stderr": content(stderr)})
    print(json.dumps(answers), flush=True)
