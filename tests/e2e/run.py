#!/usr/bin/env python3
"""Probe, replay, serve and captures against real servers and clients, which are installed below target/e2e. What
cannot be installed (no network, no npm) is skipped and said; where that is everything, the exit status is 77.

usage: run.py [probe] [replay] [serve] [interrupt] [tls] [proxy]     (none: all of them)
"""
import sys

import kit

PARTS = ("probe", "replay", "serve", "interrupt", "tls", "proxy")


def main():
    parts = sys.argv[1:] or PARTS
    kinds = kit.prepare()
    if "probe" in parts:
        import probing

        probing.run(kinds)
    python = next((k for k in kinds if k.name == "Python 1.26.0"), None)
    if "replay" in parts and python:
        import replaying

        replaying.run(python)
    if "interrupt" in parts and python:
        import interrupting

        interrupting.run(python)
    if "tls" in parts and python:
        import tls

        tls.run(python)
    if "serve" in parts:
        import playing

        playing.run(kinds)
    if "proxy" in parts:
        import proxying

        proxying.run(kinds)
    kit.end()


main()
