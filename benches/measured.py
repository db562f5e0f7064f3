"""What one run of a program takes."""
import os
import time


def run(start):
    """Starts a program by `start` and waits for it: its exit status, seconds, seconds of CPU, peak resident KiB."""
    began = time.monotonic()
    child = start()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss
