# The registry service: one static binary, no shell, not root. It links no toolchain, so
# it can neither build nor run a model; CI and nodes do that. `make image` makes the same image
# without a container engine.
FROM golang:1.26 AS build
ARG VERSION=0.0.0-dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /mlpromote ./cmd/mlpromote \
 && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /mlpromote /mlpromote
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
VOLUME /data
EXPOSE 5080
ENV HOME=/data MLPROMOTE_DATA=/data MLPROMOTE_LISTEN=:5080 MLPROMOTE_URL=http://localhost:5080 MLPROMOTE_INSECURE_HTTP=true
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/mlpromote", "health"]
ENTRYPOINT ["/mlpromote"]
CMD ["serve"]
