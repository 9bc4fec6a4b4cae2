#!/bin/sh
# Makes a release in release/: the archive for npm, the image for each platform if there is a container engine, the bill
# of materials, and checksums of all files. PLATFORMS names platforms other than linux/amd64 and linux/arm64. Refuses
# uncommitted changes, and a version without a section in CHANGELOG.md.
set -eu
cd "$(dirname "$0")/.."
version=$(node -p "require('./package.json').version")
[ -z "$(git status --porcelain)" ] || { echo 'Commit or remove your changes first' >&2; exit 1; }
grep -q "^## $version " CHANGELOG.md || { echo "CHANGELOG.md has no part for $version" >&2; exit 1; }

rm -rf release
mkdir release
npm ci --no-audit --no-fund
npm run build
npm pack --silent --pack-destination release
cp dist/sbom.cdx.json "release/mesh-monitoring-service-$version.cdx.json"

image="mesh-monitoring-service:$version"
for platform in ${PLATFORMS:-linux/amd64 linux/arm64}; do
  file="release/mesh-monitoring-service-$version-${platform#linux/}.tar"
  if docker info > /dev/null 2>&1; then
    docker buildx build --platform "$platform" --tag "$image" --output "type=docker,dest=$file" .
  elif command -v buildah > /dev/null; then
    buildah build --format docker --platform "$platform" --tag "$image" .
    buildah push "$image" "docker-archive:$file:$image"
  else
    echo "No image for $platform: no Docker engine and no buildah is here" >&2
    continue
  fi
  gzip "$file"
done

cd release
sha256sum -- * > SHA256SUMS
cat SHA256SUMS
