# The registry service: one static binary, no shell, not root. It links no toolchain, so
# it can neither build nor run a model; CI and nodes do that.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o /mlpromote ./cmd/mlpromote \
 && mkdir /data

FROM scratch
COPY --from=build /mlpromote /mlpromote
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
ENTRYPOINT ["/mlpromote"]
CMD ["serve", "--data", "/data", "--listen", "127.0.0.1:5080"]
