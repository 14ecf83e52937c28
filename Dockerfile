# syntax=docker/dockerfile:1
#
# Build the image:
#
#   docker build -t bufgym .
#
# First command of the README, a training. Its run folder appears in ./runs:
#
#   mkdir -p runs
#   docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD/runs:/work/runs" bufgym train
#
# Second command of the README, the tests. They need the sources, so they run in the build stage:
#
#   docker build --target build -t bufgym-build .
#   docker run --rm bufgym-build cargo test --release
#
# Other commands work the same way. Shipped policies are in /work/checkpoints:
#
#   docker run --rm bufgym eval --traces 8 --policy ndt:checkpoints/ndt-fct --policy dt

FROM rust:1.95-slim-trixie AS build
# The tests send signals with `kill`.
RUN apt-get update \
    && apt-get install -y --no-install-recommends procps \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --features onnx

FROM debian:trixie-slim
COPY --from=build /src/target/release/bufgym /src/target/release/bufgym-sonic-agent /usr/local/bin/
COPY LICENSE LICENSE-APACHE LICENSE-MIT /usr/share/doc/bufgym/
WORKDIR /work
COPY checkpoints checkpoints
# Without a mounted folder, run folders are made here.
RUN useradd --uid 10001 --no-create-home bufgym && mkdir runs && chown bufgym runs
USER bufgym
ENTRYPOINT ["bufgym"]
CMD ["--help"]
