#!/bin/sh
# The tests use real servers and tools: seventeen Debian packages, and the commands named as arguments. Installs the missing
# ones as root, and otherwise says what is missing.
set -eu
missing=''
[ -x /usr/bin/redis-server ] || missing="$missing redis-server"
[ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
[ -x /usr/bin/chromium ] || missing="$missing chromium"
[ -x /usr/bin/chromium-headless-shell ] || missing="$missing chromium-headless-shell"
[ -x /usr/bin/oathtool ] || missing="$missing oathtool"
[ -x /usr/bin/zbarimg ] || missing="$missing zbar-tools"
[ -x /usr/sbin/mosquitto ] || missing="$missing mosquitto"
[ -x /usr/bin/mosquitto_sub ] || missing="$missing mosquitto-clients"
[ -x /usr/bin/sshfs ] || missing="$missing sshfs"
[ -x /usr/lib/openssh/sftp-server ] || missing="$missing openssh-sftp-server"
[ -x /usr/bin/promtool ] || missing="$missing prometheus"
[ -x /usr/bin/systemd-notify ] || missing="$missing systemd"
[ -x /usr/bin/age ] || missing="$missing age"
[ -e /usr/lib/nginx/modules/ngx_http_dav_ext_module.so ] || missing="$missing libnginx-mod-http-dav-ext"
[ -x /usr/bin/socat ] || missing="$missing socat"
[ -d /usr/lib/python3/dist-packages/zeroconf ] || missing="$missing python3-zeroconf"
for command in curl python3 "$@"; do
  command -v "$command" > /dev/null || missing="$missing $command"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "The tests need:$missing (apt-get install$missing)" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $missing > /dev/null
