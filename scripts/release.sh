#!/bin/sh
# A release, step by step, as .github/workflows/release.yml calls it. The files come to release/files.
#   sh scripts/release.sh version [TAG]   refuses a tag of another version, and a version that CHANGELOG.md does not date
#   sh scripts/release.sh files           the archive for npm, compose.yaml with the image, bill of materials, checksums
#   sh scripts/release.sh image           builds the image for amd64 and arm64, and pushes it with provenance and SBOM
#   sh scripts/release.sh publish         the page of the release, with the notes of this version
#   sh scripts/release.sh dry-run         all of it without pushing: also without a container engine
# IMAGE is the address of the image, SOURCE that of the repository.
set -eu
cd "$(dirname "$0")/.."
version=$(node -p "require('./package.json').version")
# The address of an image has no capitals, the name of a repository may have some.
image=$(echo "${IMAGE:-mesh-monitoring-service}" | tr '[:upper:]' '[:lower:]')
is_candidate() { case "$version" in *-*) true ;; *) false ;; esac; }

# Prints a command, and runs it unless this is a dry run.
run() {
  echo "+ $*"
  [ -n "${dry:-}" ] || "$@"
}

check_version() {
  [ "${1:-v$version}" = "v$version" ] || { echo "The tag is $1, package.json says $version" >&2; exit 1; }
  [ -z "$(git status --porcelain)" ] || { echo 'Commit or remove your changes first' >&2; exit 1; }
  node scripts/release-notes.js "$version" > /dev/null
  echo "Version $version is ready"
}

make_files() {
  rm -rf release
  mkdir -p release/files
  npm ci --no-audit --no-fund
  npm run build
  npm pack --silent --pack-destination release/files
  cp dist/sbom.cdx.json "release/files/mesh-monitoring-service-$version.cdx.json"
  sed -e "s|^    image: .*|    image: $image:$version|" -e '/^    build: /d' -e '/^    # In a clone/d' compose.yaml \
    > release/files/compose.yaml
  cp deploy/compose.proxy.yaml release/files
  (cd release/files && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
  {
    node scripts/release-notes.js "$version"
    printf '\n### Image\n\n```sh\ndocker run -d --name mesh --restart unless-stopped -p 8080:8080 -v mesh-data:/data %s:%s\n```\n' \
      "$image" "$version"
  } > release/notes.md
}

# Not for 32-bit ARM: docs/decisions/short-decisions.md#there-is-no-image-for-32-bit-arm
push_image() {
  set -- --tag "$image:$version"
  # A candidate is nobody's latest version.
  is_candidate || set -- "$@" --tag "$image:latest" --tag "$image:${version%.*}" --tag "$image:${version%%.*}"
  [ -z "${SOURCE:-}" ] || set -- "$@" --label "org.opencontainers.image.source=$SOURCE"
  run docker buildx build --platform linux/amd64,linux/arm64 --provenance=mode=max --sbom=true \
    --label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=MIT \
    "$@" --push .
}

publish() {
  set -- "v$version" --title "$version" --notes-file release/notes.md
  is_candidate && set -- "$@" --prerelease
  run gh release create "$@" release/files/*
}

case "${1:-}" in
  version) check_version "${2:-}" ;;
  files) make_files ;;
  image) push_image ;;
  publish) publish ;;
  dry-run)
    dry=yes
    check_version
    make_files
    push_image
    node scripts/try-image.js
    publish
    ;;
  *) sed -n '2,8s/^# //p' "$0" >&2 && exit 1 ;;
esac
