# An image of the Open Container Initiative from nothing but the programs and what they are linked with:
# https://github.com/opencontainers/image-spec/blob/main/image-layout.md. Sourced by scripts/package.
#
# It has no shell and no package manager. The daemon runs as uid 65532, keeps its data in the volume
# /var/lib/stated, and serves /run/stated/stated.sock; statectl is in it, for `podman exec`.

image_user=65532

# image FILE: writes the layout as a tar archive. $tree has usr/bin and etc/stated as the package has them.
image() {
    local layout time
    layout=$(mktemp -d)
    time=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    mkdir -p "$layout/blobs/sha256"
    image_root "$tree"
    image_layer "$tree" "$layout/layer.tar" "$time"
    image_documents "$layout" "$time"
    archive "$time" -C "$layout" -cf "$1" oci-layout index.json blobs
    rm -rf "$layout"
}

# The same bytes for the same files, whoever packs them and when.
archive() {
    local time=$1
    shift
    tar --sort=name --format=posix --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
        --mtime="@$time" --owner=0 --group=0 --numeric-owner "$@"
}

# Adds the libraries and the users.
image_root() {
    local program library
    for program in stated statectl; do
        # Of a static program ldd prints none.
        for library in $(ldd "$1/usr/bin/$program" 2>/dev/null | grep -oE '/[^ ]+'); do
            # At the path by which the loader finds it; the loader's own is in the program.
            install -D -m 755 "$library" "$1$library"
        done
    done
    mkdir -p "$1/etc" "$1/var/lib/stated" "$1/run/stated" "$1/tmp"
    printf 'root:x:0:0:root:/:/bin/false\nstated:x:%d:%d:State daemon:/var/lib/stated:/bin/false\n' \
        $image_user $image_user >"$1/etc/passwd"
    printf 'root:x:0:\nstated:x:%d:\n' $image_user >"$1/etc/group"
    printf 'passwd: files\ngroup: files\n' >"$1/etc/nsswitch.conf"
    chmod 644 "$1"/etc/{passwd,group,nsswitch.conf}
    chmod 700 "$1/var/lib/stated"
    chmod 755 "$1/run/stated"
    chmod 1777 "$1/tmp"
}

# image_layer ROOT FILE TIME: all of it belongs to root, but for what the daemon writes to.
image_layer() {
    local own=(var/lib/stated run/stated)
    archive "$3" -C "$1" "${own[@]/#/--exclude=./}" -cf "$2" .
    archive "$3" --owner=$image_user --group=$image_user -C "$1" -rf "$2" "${own[@]/#/./}"
}

# blob FILE: puts the file under its digest and prints that and its size.
blob() {
    local digest
    digest=$(sha256sum "$1" | cut -d ' ' -f 1)
    size=$(stat -c %s "$1")
    mv "$1" "$layout/blobs/sha256/$digest"
    printf '"digest": "sha256:%s", "size": %d' "$digest" "$size"
}

# The documents that say what the layer is, from the inside out.
image_documents() {
    local layout=$1 created difference layer configuration manifest size type=application/vnd.oci.image
    created=$(date -u -d "@$2" +%FT%TZ)
    difference=$(sha256sum "$layout/layer.tar" | cut -d ' ' -f 1)
    gzip -9n "$layout/layer.tar"
    layer=$(blob "$layout/layer.tar.gz")
    cat >"$layout/configuration" <<END_OF_JSON
{
  "created": "$created",
  "architecture": "$arch",
  "os": "linux",
  "config": {
    "User": "$image_user:$image_user",
    "Env": ["PATH=/usr/bin", "STATED_SOCKET=/run/stated/stated.sock"],
    "Entrypoint": ["/usr/bin/stated", "--config", "/etc/stated/stated.json5", "--socket", "/run/stated/stated.sock", "--data", "/var/lib/stated"],
    "Volumes": { "/run/stated": {}, "/var/lib/stated": {} },
    "WorkingDir": "/",
    "StopSignal": "SIGTERM",
    "Labels": {
      "org.opencontainers.image.title": "stated",
      "org.opencontainers.image.version": "$version",
      "org.opencontainers.image.revision": "$commit"
    }
  },
  "rootfs": { "type": "layers", "diff_ids": ["sha256:$difference"] },
  "history": [{ "created": "$created", "created_by": "scripts/package --oci" }]
}
END_OF_JSON
    configuration=$(blob "$layout/configuration")
    cat >"$layout/manifest" <<END_OF_JSON
{
  "schemaVersion": 2,
  "mediaType": "$type.manifest.v1+json",
  "config": { "mediaType": "$type.config.v1+json", $configuration },
  "layers": [{ "mediaType": "$type.layer.v1.tar+gzip", $layer }]
}
END_OF_JSON
    manifest=$(blob "$layout/manifest")
    cat >"$layout/index.json" <<END_OF_JSON
{
  "schemaVersion": 2,
  "mediaType": "$type.index.v1+json",
  "manifests": [
    {
      "mediaType": "$type.manifest.v1+json",
      $manifest,
      "platform": { "architecture": "$arch", "os": "linux" },
      "annotations": { "org.opencontainers.image.ref.name": "$version" }
    }
  ]
}
END_OF_JSON
    printf '{ "imageLayoutVersion": "1.0.0" }\n' >"$layout/oci-layout"
}
