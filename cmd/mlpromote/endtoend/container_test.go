//go:build cgo && linux

package endtoend

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// inContainer runs the command of an image as an engine does: its own network and processes, a
// read-only root, a volume, not root. 192.0.2.1 stands for the address of the container.
const inContainer = `set -eu
ip link set lo up
ip address add 192.0.2.1/32 dev lo
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$ROOT/data"
inside() { chroot --userspec=65532:65532 "$ROOT" "$@"; }
inside /mlpromote health && { echo 'healthy before it was started'; exit 1; }
inside /mlpromote version
chroot --userspec=65532:65532 "$ROOT" "$@" &
tries=0
until inside $HEALTH; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || exit 1
	sleep 0.1
done
curl -sS -o "$OUT" -w 'a stranger from outside gets %{http_code}\n' -H 'Host: localhost:5080' http://192.0.2.1:5080/v2/
kill -TERM $!
wait $!
echo stopped
`

// TestContainer puts the image together as `make image` does and runs its root file system.
func TestContainer(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"unshare", "ip", "chroot", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on this machine", tool)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run what an image asks for: another user, a volume, a network of its own")
	}
	dir := t.TempDir()
	image := assembleImage(t, dir)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || len(c.Healthcheck.Test) < 2 || c.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("got user %q, health check %q; want 65532:65532 and a CMD", c.User, c.Healthcheck.Test)
	}
	root := filepath.Join(dir, "root")
	extract(t, image, root)
	if text, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")); err != nil || !strings.Contains(string(text), "BEGIN CERTIFICATE") {
		t.Errorf("the image has no CA certificates: %v", err)
	}
	command := slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	run := exec.CommandContext(t.Context(), "unshare", slices.Concat([]string{"--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", inContainer, "sh"}, command)...)
	run.Env = append(slices.Clone(config.Config.Env), "ROOT="+root, "OUT="+filepath.Join(dir, "answer"),
		"HEALTH="+strings.Join(config.Config.Healthcheck.Test[1:], " "))
	run.Env = slices.DeleteFunc(run.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	run.Env = append(run.Env, "PATH="+os.Getenv("PATH"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"mlpromote 1.2.3-test go", "ready", "a stranger from outside gets 401", "stopped"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in:\n%s", want, out)
		}
	}
}

// TestHealth asks services with and without TLS, one that is gone, and one that has another
// certificate than its file says.
func TestHealth(t *testing.T) {
	t.Parallel()
	program, dir := programtest.Program(t), t.TempDir()
	for _, name := range []string{"ours", "other"} {
		if err := registrytest.Certificate(filepath.Join(dir, name), "localhost"); err != nil {
			t.Fatal(err)
		}
	}
	if err := registrytest.CertificateFor(filepath.Join(dir, "expired"), "localhost", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	plain := programtest.Serve(t, program, "")
	secure := programtest.NewService(t, program, t.TempDir())
	secure.Flags = []string{"--tls-cert", filepath.Join(dir, "ours/tls.crt"), "--tls-key", filepath.Join(dir, "ours/tls.key")}
	secure.MustStart(t)
	gone := programtest.Serve(t, program, "")
	if err := gone.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		service *programtest.Service
		flags   []string
		want    int
	}{
		"plain":               {plain, nil, 0},
		"TLS":                 {secure, []string{"--tls-cert", filepath.Join(dir, "ours/tls.crt")}, 0},
		"other certificate":   {secure, []string{"--tls-cert", filepath.Join(dir, "other/tls.crt")}, 1},
		"expired in its file": {secure, []string{"--tls-cert", filepath.Join(dir, "expired/tls.crt")}, 0}, // the service keeps the one before
		"plain to TLS":        {secure, nil, 1},
		"gone":                {gone, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			health := exec.CommandContext(t.Context(), program, append([]string{"health", "--data", t.TempDir(), "--listen", c.service.Host()}, c.flags...)...)
			health.Env = append(os.Environ(), programtest.Environment(dir, "")...)
			out, err := health.CombinedOutput()
			if got := health.ProcessState.ExitCode(); got != c.want {
				t.Errorf("got exit code %d (%v), want %d: %s", got, err, c.want, out)
			}
		})
	}
}

// assembleImage builds the program for this machine, and the image of it.
func assembleImage(t *testing.T, dir string) v1.Image {
	t.Helper()
	program, ca := filepath.Join(dir, "mlpromote"), filepath.Join(dir, "ca.pem")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -X main.version=1.2.3-test", "-o", program, "./cmd/mlpromote")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	assemble := exec.CommandContext(t.Context(), "go", "run", "./tools/image", "-version", "1.2.3-test", "-ca", ca, "-layout", filepath.Join(dir, "image"), runtime.GOARCH+"="+program)
	if err := registrytest.Certificate(dir, "localhost"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*exec.Cmd{build, assemble} {
		c.Dir = programtest.Root()
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "image"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		first := manifest.Manifests[0]
		if first.MediaType.IsImage() {
			image, err := index.Image(first.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
		if index, err = index.ImageIndex(first.Digest); err != nil {
			t.Fatal(err)
		}
	}
}

// extract writes the root file system of an image.
func extract(t *testing.T, image v1.Image, root string) {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(stream); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, h.FileInfo().Mode()), os.Chown(path, h.Uid, h.Gid))
		} else {
			var data []byte
			if data, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, data, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
