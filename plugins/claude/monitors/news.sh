#!/bin/sh
# One line for each task that ended, failed or asks. The client delivers each line to the model.
# Without a running daemon there is no news, and nothing is started.
exec matsu watch --lines --here
