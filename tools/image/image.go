package main

import (
	"archive/tar"
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// userID is the user and group of the service.
const userID = 65532

// contents is what an image is made of.
type contents struct {
	arch, version         string
	program, certificates []byte
}

// platformImage is an image for linux on an architecture.
type platformImage struct {
	arch  string
	image v1.Image
}

// assemble makes the image. The program has a separate layer, since the rest rarely changes.
func assemble(c contents) (v1.Image, error) {
	base := []entry{
		folder("etc/", 0o755, 0), folder("etc/ssl/", 0o755, 0), folder("etc/ssl/certs/", 0o755, 0),
		file("etc/ssl/certs/ca-certificates.crt", 0o644, c.certificates),
		file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nmlpromote:x:65532:65532:mlpromote:/data:/sbin/nologin\n")),
		file("etc/group", 0o644, []byte("root:x:0:\nmlpromote:x:65532:\n")),
		folder("tmp/", 0o1777, 0), folder("data/", 0o700, userID),
	}
	program := []entry{file("mlpromote", 0o755, c.program)}
	image := mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json")
	image = mutate.ConfigMediaType(image, "application/vnd.oci.image.config.v1+json")
	for _, entries := range [][]entry{base, program} {
		raw, err := archive(entries)
		if err != nil {
			return nil, err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType("application/vnd.oci.image.layer.v1.tar+gzip"))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(image, configured(image, c))
}

// configured is the image's configuration. Settings are variables rather than flags of the
// command, so that `mlpromote health` sees them too. The service listens on every address of
// its container and requires a token. To publish the port, set MLPROMOTE_URL, and use TLS with
// MLPROMOTE_TLS_CERT and MLPROMOTE_TLS_KEY or a proxy.
func configured(image v1.Image, c contents) *v1.ConfigFile {
	made, err := image.ConfigFile()
	if err != nil { // it is in memory
		panic(err)
	}
	config := made.DeepCopy()
	config.OS, config.Architecture = "linux", c.arch
	config.Config = v1.Config{
		User:       "65532:65532",
		WorkingDir: "/data",
		Entrypoint: []string{"/mlpromote"},
		Cmd:        []string{"serve"},
		Env: []string{"PATH=/", "HOME=/data", "MLPROMOTE_DATA=/data", "MLPROMOTE_LISTEN=:5080",
			"MLPROMOTE_URL=http://localhost:5080", "MLPROMOTE_INSECURE_HTTP=true"},
		ExposedPorts: map[string]struct{}{"5080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/mlpromote", "health"},
			Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "mlpromote",
			"org.opencontainers.image.description": "Registry service of mlpromote",
			"org.opencontainers.image.version":     c.version,
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return config
}

// entry is a file or folder of a layer.
type entry struct {
	tar.Header
	data []byte
}

func folder(name string, mode int64, owner int) entry {
	return entry{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner}, nil}
}

func file(name string, mode int64, data []byte) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}, data}
}

// archive writes entries as a tar file, with no times in it.
func archive(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		e.ModTime = time.Unix(0, 0)
		if err := w.WriteHeader(&e.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
