"""Starts the program of a manifest as if Python had been called with it, with our modules in front of its own."""

import os
import runpy
import sys

program = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(1, os.path.dirname(program))
runpy.run_path(program, run_name="__main__")
