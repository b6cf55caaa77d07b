#!/usr/bin/env bash
# The recipes of docs/remote.md as they stand there, tried: sign-in, REST, events and MCP through Caddy, nginx and a
# tunnel of ssh, with TLS where the recipe has it. Everything listens on loopback and ends with this script.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh remote
target=${CARGO_TARGET_DIR:-$PWD/target}
matsu=${MATSU_BIN:-}
if [ -z "$matsu" ]; then
  cargo build --quiet --locked -p matsu
  matsu=$target/debug/matsu
fi

scratch=$(mktemp -d)
chmod 700 "$scratch"
running=()
end() {
  for pid in "${running[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${running[@]}"; do wait "$pid" 2>/dev/null || true; done
  running=()
}
trap 'end; rm -rf "$scratch"' EXIT
fail() {
  echo "remote: $*" >&2
  for log in "$scratch"/*.log; do echo "--- $log" >&2; tail -n 20 "$log" >&2; done
  exit 1
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# until_answers URL LOG
until_answers() {
  for _ in $(seq 150); do
    curl --silent --output /dev/null --cacert "$scratch/ca.pem" "$1/healthz" && return
    sleep 0.1
  done
  fail "$1 does not answer"
}

# The block of the page below this heading.
recipe() { awk -v heading="$1" '$0 == heading { on = 1 } /^```/ && on { if (inside) exit; inside = 1; next } inside' docs/remote.md; }

# A certificate as a public one is: of an authority that the clients here trust.
(
  cd "$scratch"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=an authority for this test" -keyout ca-key.pem -out ca.pem
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out request.pem
  printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n' >names
  openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile names -out cert.pem
) 2>/dev/null
export SSL_CERT_FILE=$scratch/ca.pem

# serve NAME PUBLIC_URL: a daemon of its own; sets address, token, data.
serve() {
  data=$scratch/$1
  env -u MATSU_STORE_URL MATSU_SERVER_PUBLIC_URL="$2" HOME="$scratch" "$matsu" --data-dir "$data" serve --test-jobs --port 0 \
    >"$scratch/$1-matsu.log" 2>&1 &
  running+=($!)
  for _ in $(seq 150); do [ -s "$data/server.json" ] && break; sleep 0.1; done
  [ -s "$data/server.json" ] || fail "matsu does not start"
  address=$(sed 's/.*"address":"http:\/\/\([^"]*\)".*/\1/' "$data/server.json")
  token=$(cat "$data/token")
}

ask() { curl --silent --show-error --max-time 20 --cacert "$scratch/ca.pem" "$@"; }
status() { ask --output "$scratch/body" --dump-header "$scratch/head" --write-out '%{http_code}' "$@"; }
expect() {
  local wanted=$1 what=$2 got
  shift 2
  got=$(status "$@") || fail "$what: curl failed"
  [ "$got" = "$wanted" ] || fail "$what: $got instead of $wanted: $(cat "$scratch/body")"
}

# try NAME URL SECURE: everything that a person and a client do, by way of URL.
try() {
  local name=$1 url=$2 secure=$3 link code key session
  local json='Content-Type: application/json' auth="Authorization: Bearer $token"
  link=$(MATSU_SERVER_PUBLIC_URL=${4:-none} HOME="$scratch" "$matsu" --data-dir "$data" open --print)
  case $link in "$url/login#code="*) ;; *) fail "$name: matsu open printed $link" ;; esac
  code=${link##*#code=}

  expect 200 "$name: the page" "$url/login"
  expect 401 "$name: no token" "$url/api/v1/tasks"
  grep -qi '^www-authenticate: bearer' "$scratch/head" || fail "$name: 401 without WWW-Authenticate"
  expect 201 "$name: sign-in" -c "$scratch/jar" -H "Origin: $url" -H "$json" -d "{\"code\":\"$code\"}" "$url/api/v1/login"
  key=$(sed 's/.*"key":"\([^"]*\)".*/\1/' "$scratch/body")
  if [ "$secure" = secure ]; then
    grep -i '^set-cookie:' "$scratch/head" | grep -q '; Secure' || fail "$name: the cookie is not Secure"
  fi
  expect 200 "$name: who is signed in" -b "$scratch/jar" -H "X-Matsu-Key: $key" "$url/api/v1/session"
  expect 201 "$name: a write of the page" -b "$scratch/jar" -H "X-Matsu-Key: $key" -H "Origin: $url" \
    -H 'Sec-Fetch-Site: same-origin' -H "$json" -d '{"name":"remote"}' "$url/api/v1/tokens"
  expect 403 "$name: a write from elsewhere" -b "$scratch/jar" -H "X-Matsu-Key: $key" -H 'Origin: https://evil.example.org' \
    -H "$json" -d '{"name":"evil"}' "$url/api/v1/tokens"

  expect 200 "$name: REST" -H "$auth" "$url/api/v1/tasks"
  expect 200 "$name: a task" -H "$auth" -H "$json" -d '{"jobs":[{"kind":"sleep","input":{"ms":3000}}]}' "$url/test/tasks"
  local task
  task=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/' "$scratch/body")
  # The first event must come while the stream is open, not when it ends.
  ask --no-buffer --max-time 4 -H "$auth" "$url/api/v1/events" >"$scratch/events" 2>/dev/null &
  local stream=$!
  for _ in $(seq 30); do grep -q '^event: *hello' "$scratch/events" && break; sleep 0.1; done
  kill -0 "$stream" 2>/dev/null || fail "$name: the events ended"
  grep -q '^event: *hello' "$scratch/events" || fail "$name: events are held back"
  wait "$stream" || true
  expect 200 "$name: a wait" -H "$auth" "$url/test/wait?task=$task&since=0&timeout=20&wait_for=all"

  local accept='Accept: application/json, text/event-stream'
  expect 200 "$name: MCP" -H "$auth" -H "$json" -H "$accept" -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":
    {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"remote","version":"1"}}}' "$url/mcp"
  session=$(tr -d '\r' <"$scratch/head" | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')
  expect 200 "$name: the tools" -H "$auth" -H "$json" -H "$accept" -H "Mcp-Session-Id: $session" \
    -d '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' "$url/mcp"
  grep -q '"create_task"' "$scratch/body" || fail "$name: no tools: $(head -c 300 "$scratch/body")"
  echo "remote: $name: sign-in, REST, events, a wait and MCP work"
}

through_caddy() {
  local port url
  port=$(free_port) url=https://localhost:$port
  serve caddy "$url"
  {
    printf '{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n'
    recipe '### Caddy' | sed -e "s|^matsu.example.org {|$url {\n\tbind 127.0.0.1\n\ttls $scratch/cert.pem $scratch/key.pem|" -e "s/127.0.0.1:7878/$address/"
  } >"$scratch/Caddyfile"
  HOME=$scratch caddy run --config "$scratch/Caddyfile" --adapter caddyfile >"$scratch/caddy.log" 2>&1 &
  running+=($!)
  until_answers "$url"
  try Caddy "$url" secure "$url"
  end
}

through_nginx() {
  local port url
  port=$(free_port) url=https://localhost:$port
  serve nginx "$url"
  {
    printf 'daemon off;\npid %s/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n' "$scratch"
    for kind in client_body proxy fastcgi uwsgi scgi; do printf '%s_temp_path %s/nginx-%s;\n' $kind "$scratch" $kind; done
    recipe '### nginx' | sed -e "s/listen 443 ssl/listen 127.0.0.1:$port ssl/" -e 's/server_name .*/server_name localhost;/' \
      -e "s|/etc/.*/fullchain.pem|$scratch/cert.pem|" -e "s|/etc/.*/privkey.pem|$scratch/key.pem|" -e "s/127.0.0.1:7878/$address/"
    echo '}'
  } >"$scratch/nginx.conf"
  nginx -p "$scratch" -c "$scratch/nginx.conf" -e "$scratch/nginx.log" >>"$scratch/nginx.log" 2>&1 &
  running+=($!)
  until_answers "$url"
  try nginx "$url" secure "$url"
  end
}

through_ssh() {
  local sshd_port port
  sshd_port=$(free_port)
  serve ssh none
  port=${address##*:}
  local far=$port
  ssh-keygen -q -t ed25519 -N '' -f "$scratch/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$scratch/user_key"
  cp "$scratch/user_key.pub" "$scratch/authorized"
  cat >"$scratch/sshd_config" <<SSHD
Port $sshd_port
ListenAddress 127.0.0.1
HostKey $scratch/host_key
AuthorizedKeysFile $scratch/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
SSHD
  if [ "$(id -u)" -eq 0 ]; then mkdir -p /run/sshd; fi
  "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$scratch/sshd_config" >"$scratch/sshd.log" 2>&1 &
  running+=($!)
  # The tunnel's own end: this machine is both, so the port cannot be the same as in the recipe.
  local near
  near=$(free_port)
  local command
  command=$(recipe '## A tunnel: ssh -L' | sed -e "s/7878:127.0.0.1:7878/$near:127.0.0.1:$far/" -e "s/you@server/$(id -un)@127.0.0.1/")
  [ -n "$command" ] || fail "the page shows no ssh -L"
  local options="-p $sshd_port -i $scratch/user_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectionAttempts=30"
  # shellcheck disable=SC2086
  ssh $options ${command#ssh } >"$scratch/ssh.log" 2>&1 &
  running+=($!)
  until_answers "http://127.0.0.1:$near"
  # The link names the far end's port; behind the tunnel the same page is at the near one.
  mv "$scratch/ssh/server.json" "$scratch/ssh/server.json.far"
  sed "s/:$far/:$near/" "$scratch/ssh/server.json.far" >"$scratch/ssh/server.json"
  try "ssh -L" "http://127.0.0.1:$near" plain
  end
}

through_caddy
through_nginx
through_ssh
