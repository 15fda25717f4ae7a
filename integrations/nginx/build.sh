#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the module for the nginx of this machine; otel-c is what pkg-config finds.
#
#   integrations/nginx/build.sh FOLDER [COMPILER-OPTION...]
#
# leaves ngx_http_otel_module.so in FOLDER. Debian's package nginx-dev has what is needed of nginx's
# source; NGINX_SOURCE names another one, of the version that `nginx -v` says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?where to build}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

if [[ ! $folder/nginx/objs/Makefile -nt $here/config ]]; then
    rm -rf "$folder/nginx"
    cp -r "${NGINX_SOURCE:-/usr/share/nginx/src}" "$folder/nginx"
    cd "$folder/nginx"
    NGX_CONF_FLAGS=(--with-compat)
    [[ ! -f conf_flags ]] || . ./conf_flags # those of Debian's nginx
    ./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="-O2 -g -fPIC $*" --with-ld-opt="$*" \
        --add-dynamic-module="$here" >"$folder/configure.log" ||
        { tail "$folder/configure.log" >&2; exit 1; }
fi
make -C "$folder/nginx" -f objs/Makefile modules >"$folder/make.log" ||
    { tail "$folder/make.log" >&2; exit 1; }
install -m 644 "$folder/nginx/objs/ngx_http_otel_module.so" "$folder/"
