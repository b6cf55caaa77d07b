#!/usr/bin/env bash
# A private PostgreSQL server for tests: its own scratch folder, its own free port on 127.0.0.1.
#
#   scripts/postgres.sh run CMD…   start a server, run CMD with MATSU_TEST_POSTGRES set, stop and remove the
#                                  server whatever happens, and exit as CMD did
#   scripts/postgres.sh start      start a server that stays, and print its URL
#   scripts/postgres.sh url        print the URL of the server that `start` left
#   scripts/postgres.sh stop       stop that server and remove its folder
#   scripts/postgres.sh restart    inside `run`, or after `start`: kill the server hard and start it again
#
# MATSU_TEST_POSTGRES          if set, `run` uses that server and starts none
# MATSU_TEST_POSTGRES_SCRATCH  the folder below which scratch folders are made (default: TMPDIR, then /tmp)
# MATSU_TEST_POSTGRES_DIR      set for CMD by `run`: the scratch folder of its server; `restart` reads it
# MATSU_TEST_POSTGRES_FSYNC     off: nothing is forced to the disk, which only a power cut would show; half the time of
#                              each new schema
#
# PostgreSQL is installed from Debian's packages if it is not there and we may. The server refuses to run as
# root, so root hands it to the user `postgres`. Several of these can run at once; none touches another.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pointer="${CARGO_TARGET_DIR:-$here/target}/postgres-dir"

say() { echo "postgres.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

# Prints the folder of the server's programs: from PATH, else Debian's, newest first.
find_programs() {
  local initdb
  if initdb=$(command -v initdb); then
    initdb=$(readlink -f "$initdb")
    if [ -x "$(dirname "$initdb")/pg_ctl" ]; then
      dirname "$initdb"
      return 0
    fi
  fi
  local candidate
  for candidate in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
    if [ -x "$candidate/initdb" ] && [ -x "$candidate/pg_ctl" ]; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

install_programs() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    fail "no PostgreSQL server found: install one (Debian: postgresql), or set MATSU_TEST_POSTGRES to the URL of yours"
  fi
  say "installing PostgreSQL"
  # Two runs may find it missing at the same moment; the second waits for the first.
  exec 9>/tmp/.matsu-postgres-install.lock
  flock 9
  if ! find_programs >/dev/null; then
    # Debian would otherwise make and start a cluster of its own, on the usual port, which nothing uses.
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
      mkdir -p /etc/postgresql-common
      echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    fi
    local log
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
      -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold postgresql; } >"$log" 2>&1 9>&-; then
      cat "$log" >&2
      rm -f "$log"
      fail "PostgreSQL could not be installed"
    fi
    rm -f "$log"
  fi
  exec 9>&-
}

# Runs a command as the user the server runs as, from a folder that user can enter.
as_server() {
  if [ "$(id -u)" -eq 0 ]; then
    (cd / && exec runuser -u postgres -- "$@")
  else
    (cd / && exec "$@")
  fi
}

prepare() {
  programs=$(find_programs) || {
    install_programs
    programs=$(find_programs) || fail "PostgreSQL was installed, but initdb is nowhere to be found"
  }
  if [ "$(id -u)" -eq 0 ] && ! id postgres >/dev/null 2>&1; then
    useradd --system --no-create-home --shell /usr/sbin/nologin postgres
  fi
}

# Makes the scratch folder and an empty cluster in it; sets `dir`.
make_cluster() {
  local base=${MATSU_TEST_POSTGRES_SCRATCH:-${TMPDIR:-/tmp}}
  # The path of a Unix socket may have 107 bytes.
  if [ ${#base} -gt 70 ]; then base=/tmp; fi
  dir=$(mktemp -d "$base/matsu-postgres.XXXXXX")
  if [ "$(id -u)" -eq 0 ]; then chown postgres: "$dir"; fi
  if ! as_server test -w "$dir"; then
    fail "the server's user cannot write below $base: set MATSU_TEST_POSTGRES_SCRATCH to a folder it can enter"
  fi
  if ! as_server "$programs/initdb" -D "$dir/data" -U matsu -A trust -E UTF8 --locale=C.UTF-8 --no-sync \
    >"$dir/initdb.log" 2>&1; then
    cat "$dir/initdb.log" >&2
    fail "initdb failed"
  fi
  printf '%s\n' 'local all all trust' 'host all all 127.0.0.1/32 trust' >"$dir/data/pg_hba.conf"
  cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
unix_socket_permissions = 0700
max_connections = 200
fsync = ${MATSU_TEST_POSTGRES_FSYNC:-on}
CONF
}

# Starts the server on a port without a listener. Another process may take it between the draw and the bind;
# then the server says so and we draw again.
start_on_free_port() {
  local attempt port
  for attempt in $(seq 1 30); do
    # Below the range the kernel hands out for outgoing connections.
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue; fi
    if start_server "$port"; then
      echo "$port" >"$dir/port"
      as_server "$programs/createdb" -h 127.0.0.1 -p "$port" -U matsu matsu
      return 0
    fi
    if ! grep -q 'Address already in use' "$dir/server.log"; then break; fi
    rm -f "$dir/server.log"
  done
  cat "$dir/server.log" >&2
  fail "the server did not start (attempt $attempt)"
}

start_server() {
  as_server "$programs/pg_ctl" start -D "$dir/data" -l "$dir/server.log" -o "-p $1" -w -t 60 >/dev/null 2>&1
}

remove_cluster() {
  if [ -z "${dir:-}" ] || [ ! -d "$dir" ]; then return 0; fi
  if [ -f "$dir/data/postmaster.pid" ]; then
    as_server "$programs/pg_ctl" stop -D "$dir/data" -m immediate -w -t 60 >/dev/null 2>&1 ||
      say "the server in $dir did not stop"
  fi
  # A run of all tests leaves more than a hundred thousand files, one for each table and index of each schema. Removing
  # them takes minutes on some disks, and nothing waits for it.
  rm -rf "$dir" </dev/null >/dev/null 2>&1 &
}

print_url() { echo "postgres://matsu@127.0.0.1:$(cat "$1/port")/matsu"; }

# The folder of the server that `start` left, if it is there.
started_dir() {
  local known
  [ -f "$pointer" ] || return 1
  known=$(cat "$pointer")
  [ -f "$known/port" ] || return 1
  echo "$known"
}

command_start() {
  if dir=$(started_dir); then
    prepare
    # The machine may have been restarted since.
    as_server "$programs/pg_ctl" status -D "$dir/data" >/dev/null || start_server "$(cat "$dir/port")" ||
      fail "the server in $dir does not start: run 'scripts/postgres.sh stop' first"
  else
    prepare
    trap remove_cluster EXIT
    make_cluster
    start_on_free_port
    mkdir -p "$(dirname "$pointer")"
    echo "$dir" >"$pointer"
    trap - EXIT
  fi
  print_url "$dir"
}

command_stop() {
  if dir=$(started_dir); then
    prepare
    remove_cluster
  else
    say "no server was started here"
  fi
  rm -f "$pointer"
}

command_url() {
  dir=$(started_dir) || fail "no server was started here: run 'scripts/postgres.sh start'"
  print_url "$dir"
}

command_restart() {
  dir=${MATSU_TEST_POSTGRES_DIR:-$(started_dir || true)}
  if [ -z "$dir" ] || [ ! -f "$dir/port" ]; then fail "there is no server of ours to restart"; fi
  prepare
  as_server "$programs/pg_ctl" stop -D "$dir/data" -m immediate -w -t 60 >/dev/null
  start_server "$(cat "$dir/port")" || fail "the server did not come back: see $dir/server.log"
}

command_run() {
  if [ $# -eq 0 ]; then fail "run needs a command"; fi
  if [ -n "${MATSU_TEST_POSTGRES:-}" ]; then exec "$@"; fi
  prepare
  child=
  trap 'trap "" INT TERM HUP; remove_cluster' EXIT
  trap 'pass_on INT' INT
  trap 'pass_on TERM' TERM
  trap 'pass_on HUP' HUP
  make_cluster
  start_on_free_port
  MATSU_TEST_POSTGRES=$(print_url "$dir")
  export MATSU_TEST_POSTGRES MATSU_TEST_POSTGRES_DIR="$dir"

  # In the background, because bash runs no trap while it waits for a foreground command; with job control, so
  # that the command is a process group of its own and does not inherit an ignored SIGINT.
  if [ -t 0 ]; then exec </dev/null; fi
  set -m
  "$@" <&0 &
  child=$!
  set +m
  local code
  while true; do
    code=0
    wait "$child" || code=$?
    # A trap ends `wait` early; the command may still be cleaning up after itself.
    kill -0 "$child" 2>/dev/null || break
  done
  exit "$code"
}

# A signal to us goes to the command and all it started; before there is one, it ends us.
pass_on() {
  if [ -z "$child" ]; then exit 130; fi
  kill "-$1" -- "-$child" 2>/dev/null || true
}

case "${1:-}" in
  run) shift; command_run "$@" ;;
  start) command_start ;;
  stop) command_stop ;;
  url) command_url ;;
  restart) command_restart ;;
  *)
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
