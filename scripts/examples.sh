#!/usr/bin/env bash
# Asks ten questions about the documentation of two packages, as npm and PyPI have them, and saves the reports below
# docs/examples. No model writes them.
#
#   scripts/examples.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."

FASTIFY=5.6.0
DJANGO=5.2
binary=$(realpath "$1")
out=$PWD/docs/examples
work=$(mktemp -d)
trap 'HOME="$work" "$binary" shutdown >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

cd "$work"
npm pack --silent "fastify@$FASTIFY" >/dev/null
tar xzf "fastify-$FASTIFY.tgz" package/docs
pip download --quiet --no-deps --no-binary :all: "django==$DJANGO"
tar xzf ./*jango-"$DJANGO".tar.gz
mv package/docs fastify
mv ./*jango-"$DJANGO"/docs django

questions=(
  "fastify|How do I set a request body size limit in Fastify?"
  "fastify|In which order do the hooks of a request run?"
  "fastify|How can I validate the query string of a route?"
  "fastify|What happens when a plugin does not load in time?"
  "fastify|How do I keep headers out of the log?"
  "django|What happens to a database transaction when an exception is raised inside atomic?"
  "django|How can an index be created without locking the table in PostgreSQL?"
  "django|How long does a session cookie last by default?"
  "django|How do I call a management command from code?"
  "django|Which settings must be changed before deploying to production?"
)

mkdir -p "$out"
rm -f "$out"/*.md
{
  echo "# Example reports"
  echo
  echo "Ten questions about the documentation of fastify $FASTIFY (Markdown, from npm) and Django $DJANGO (text, from PyPI), as \`scripts/examples.sh\` asked them. No model wrote these reports: every sentence stands in the documents."
  echo
} >"$out/README.md"
number=0
for line in "${questions[@]}"; do
  folder=${line%%|*}
  question=${line#*|}
  number=$((number + 1))
  file=$(printf '%02d-%s.md' "$number" "$folder")
  HOME="$work" "$binary" research "$question" --dir "$folder" --out report.md >/dev/null
  sed "s|file://$work/|file:///|g" report.md >"$out/$file"
  echo "- [$question]($file) ($folder)" >>"$out/README.md"
done
