#!/bin/sh
# Prints one line for each task that ended, failed or asks a question. The client delivers each line to the model.
# If no daemon runs, it prints nothing and starts nothing.
exec matsu watch --lines --here
