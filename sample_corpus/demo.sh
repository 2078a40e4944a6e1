#!/bin/sh
# From a folder of documents to an index, two questions, an edited document and an update.
# Offline and without a key; only the installation, on the first run, needs the network.
# Works in a temporary copy of the documents, which is removed at the end.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
root=$(dirname -- "$here")
. "$here/environment.sh"
prepare_environment ""

# The demo writes nothing into the checkout, and shows what happens with no model configured.
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
unset MRAG_MODEL MRAG_EMBEDDER MRAG_CACHE

work=$(mktemp -d "${TMPDIR:-/tmp}/mrag-demo.XXXXXX")
trap 'cd /; rm -rf -- "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cp -R "$here/documents" "$work/documents"
cd "$work"

# POSIX sh hides the failure of all stages of a pipe but the last, so each one that fails is written down.
failed=$work/failed
mrag() {
    command mrag "$@" || echo "mrag $1 ended with exit code $?" >>"$failed"
}

stop() {
    printf 'The demo failed: %s\n' "$1" >&2
    exit 1
}

# Say what a step does, show its command line, run it.
step() {
    printf '\n%s\n    $ %s\n' "$1" "$2"
    eval "$2" || stop "$2"
    [ ! -s "$failed" ] || stop "$(cat "$failed")"
}

# Fail unless the context for a question holds one text and not another.
expect() {
    context=$(mrag query kb "$1" --budget 128)
    case $context in
        *"$3"*) stop "the answer says $3" ;;
        *"$2"*) ;;
        *) stop "the answer does not say $2" ;;
    esac
}

question='When does the last boat leave Hythe Holm?'

step "Cut the documents into units, write markers, check them, index them." \
    "mrag tag documents | mrag extract | mrag validate | mrag index -o kb"
step "What the index holds." \
    "mrag info kb"
step "A question, answered with at most 64 tokens of evidence." \
    "mrag query kb 'How many seeds may a household borrow?' --budget 64"
expect 'How many seeds may a household borrow?' '60 seeds' 'Log in'
step "Another question, with at most 128." \
    "mrag query kb '$question' --budget 128"
expect "$question" 18:10 19:45

step "A document changes: the last boat leaves later." \
    "sed 's/leaves at 18:10/leaves at 19:45/' documents/harbour/ferry-guide.txt >new && mv new documents/harbour/ferry-guide.txt"
step "Only the changed document goes through the pipe, and the index is updated." \
    "mrag tag documents --changed-since kb | mrag extract | mrag validate | mrag update kb"
step "The same question again: the new time." \
    "mrag query kb '$question' --budget 128"
expect "$question" 19:45 18:10

printf '\nDone. The same commands are at hand after:\n    $ . "%s/bin/activate"\n' "$venv"
