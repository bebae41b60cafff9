# Sourced by ./demo, ./test and .ci/run: says what is missing, and installs it.

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    fail "installing needs root: run '$*' as root, then start again"
  fi
}

need_cargo() {
  command -v cargo >/dev/null || [ ! -r "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"
  command -v cargo >/dev/null || fail "there is no cargo: install Rust 1.95 or newer with rustup, then start again"
}

# need_packages FILE-OR-COMMAND:PACKAGE ...: installs the packages whose command or file (a pattern) isn't there.
need_packages() {
  local pair what package missing=()
  for pair in "$@"; do
    what=${pair%:*} package=${pair##*:}
    if [[ $what == /* ]]; then
      compgen -G "$what" >/dev/null || missing+=("$package")
    else
      command -v "$what" >/dev/null || missing+=("$package")
    fi
  done
  [ ${#missing[@]} = 0 ] && return
  command -v apt-get >/dev/null || fail "these Debian packages are needed, and there is no apt-get: ${missing[*]}"
  say "installing the Debian packages ${missing[*]}"
  as_root apt-get update -qq
  # What starts by itself after the installation would take well-known ports; the tests start their own.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

need_nextest() {
  cargo nextest --version >/dev/null 2>&1 && return
  say "installing cargo-nextest (once, some minutes)"
  cargo install --locked cargo-nextest
}

need_deny() {
  cargo deny --version >/dev/null 2>&1 && return
  say "installing cargo-deny (once, some minutes)"
  cargo install --locked cargo-deny
}
