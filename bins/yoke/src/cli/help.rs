//! What the help says after the flags: exit codes, and an example for each command.

/// Of the program.
pub(super) const ROOT: &str = "\
Flags may be written with one dash or with two, and may stand before or after the arguments.

Exit codes:
  0  done, also with warnings
  1  an error, or a missing or wrong argument
  2  an unknown flag, a flag with a wrong value, or a command that this version lacks";

/// Of `takeoff`.
pub(super) const TAKEOFF: &str = "\
Examples:
  yoke takeoff -wait 1m web ./web.wasm -- -replicas 3 < values.json
  yoke takeoff web < resources.yaml
  yoke takeoff -diff-only web https://flights.example.dev/web.wasm";

/// Of `descent`.
pub(super) const DESCENT: &str = "\
Examples:
  yoke blackbox web                the revisions there are
  yoke descent -wait 1m web 2      back to the second";

/// Of `unlatch`.
pub(super) const UNLATCH: &str = "\
Example:
  yoke unlatch -namespace team web";

/// Of `mayday`.
pub(super) const MAYDAY: &str = "\
Example:
  yoke mayday -namespace team -remove-crds web";

/// Of `blackbox`.
pub(super) const BLACKBOX: &str = "\
Examples:
  yoke blackbox                          all releases
  yoke blackbox -namespace team web      the revisions of one
  yoke blackbox web 2                    what revision 2 holds, content of Secrets included
  yoke blackbox -context 1 web 1 2       how revision 2 differs from revision 1";

/// Of `turbulence`.
pub(super) const TURBULENCE: &str = "\
The exit code is 0 with and without differences.

Examples:
  yoke turbulence web                         what has been changed by others
  yoke turbulence -conflict-only=false web    and what they have added
  yoke turbulence -fix web                    bring it back";

/// Of `stow`.
pub(super) const STOW: &str = "\
The artifact also gets the tags sha256_<checksum of the module> and latest. Credentials are those of docker login.

Examples:
  yoke stow ./web.wasm oci://ghcr.io/team/web:v1.2.3
  yoke stow -tag stable -tag v1,v1.2 ./web.wasm oci://ghcr.io/team/web:v1.2.3";

/// Of `cache`.
pub(super) const CACHE: &str = "\
Examples:
  yoke cache ls -compilation-cache ~/.cache/yoke
  yoke cache prune -compilation-cache ~/.cache/yoke -max-mib 200
  yoke cache prune -compilation-cache ~/.cache/yoke -older-than 720h";

/// Of `schematics`.
pub(super) const SCHEMATICS: &str = "\
Examples:
  yoke schematics -wasm web.wasm ls
  yoke schematics -wasm https://flights.example.dev/web.wasm get docs
  yoke schematics -wasm web.wasm set docs < docs.md
  echo '[\"-schema\"]' | yoke schematics -wasm web.wasm set -cmd schema";

/// Of `sign`.
pub(super) const SIGN: &str = "\
Examples:
  openssl genpkey -algorithm ED25519 -out key.pem
  yoke sign -key key.pem web.wasm";

/// Of `verify`.
pub(super) const VERIFY: &str = "\
Examples:
  openssl pkey -in key.pem -pubout -out key.pub.pem
  yoke verify -key key.pub.pem web.wasm";

/// Of `version`.
pub(super) const VERSION: &str = "\
Example:
  yoke version -o json";

/// Of `completion`.
pub(super) const COMPLETION: &str = "\
Examples:
  source <(yoke completion bash)
  yoke completion zsh > \"${fpath[1]}/_yoke\"
  yoke completion fish > ~/.config/fish/completions/yoke.fish";

/// Of `man`.
pub(super) const MAN: &str = "\
Example:
  yoke man takeoff | man -l -";
