# Sprag alone in an image: one static binary, no shell, no root.
#
# Certificate authorities and time zones are inside the binary; mount /etc/ssl/certs to add a company's own.

ARG RUST_VERSION=1.95
FROM rust:${RUST_VERSION}-alpine AS build
# hadolint ignore=DL3018
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
# What `sprag --version` says it was built from; the image has no history to look at.
ARG BUILD_COMMIT=unknown
# Alpine's own target is musl, and links statically.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p sprag \
    && install -D -m 0755 target/release/sprag /image/sprag \
    && install -d -m 0700 /image/var/lib/sprag \
    && install -d -m 0755 /image/etc/sprag

FROM scratch
COPY --from=build /image/sprag /sprag
COPY --from=build /image/etc/sprag /etc/sprag
COPY --from=build --chown=65532:65532 /image/var/lib/sprag /var/lib/sprag
USER 65532:65532
# A file /etc/sprag/sprag.toml is read if there is one; variables come before it.
WORKDIR /etc/sprag
# In a container loopback is nobody's. Who may reach the ports is for those who publish them to say. Huge pages, where the
# machine gives them to everybody, would more than double the memory at rest.
ENV SPRAG_PROXY_LISTEN=0.0.0.0:7070 \
    SPRAG_ADMIN_LISTEN=0.0.0.0:7071 \
    SPRAG_DATA_DIR=/var/lib/sprag \
    SQLITE_TMPDIR=/var/lib/sprag \
    MIMALLOC_ALLOW_THP=0
VOLUME /var/lib/sprag
EXPOSE 7070 7071
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/sprag", "status"]
ENTRYPOINT ["/sprag"]
