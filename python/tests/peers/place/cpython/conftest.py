"""Lets the commands that CPython's tests start find the modules in this folder, too: they are isolated otherwise."""

from test.support import script_helper

script_helper.interpreter_requires_environment = lambda: True
