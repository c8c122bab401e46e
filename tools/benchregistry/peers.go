package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-chi/chi/v5"
)

// config is where things are.
type config struct {
	mlpromote, distribution string // programs
	sample                  string // archive of a data directory
	disk, memory            string // folders
	only                    string // see the flag
}

// Names of what is measured, as the tables have them.
const (
	ours     = "mlpromote"
	secured  = "mlpromote, TLS and token"
	cncf     = "distribution"
	debian   = "docker-registry"
	static   = "nginx"
	staticBy = "nginx, TLS"
	nothing  = "empty chi handler"
	hashing  = "sha256"
	writing  = "write + fsync"
	debianBy = "docker-registry" // program of the package
)

// peer is a kind of server.
type peer struct {
	name  string
	start func(ctx context.Context, s *server) error // in s.dir
}

// registries are those that take pushes. Ours come first.
func (c config) registries() []peer {
	return []peer{
		{ours, c.serve},
		{secured, c.serveSecured},
		{cncf, func(ctx context.Context, s *server) error { return dockerRegistry(ctx, s, c.distribution) }},
		{debian, func(ctx context.Context, s *server) error { return dockerRegistry(ctx, s, debianBy) }},
	}
}

// run starts a peer in a new folder below root.
func (p peer) run(ctx context.Context, root string) (*server, error) {
	dir, err := os.MkdirTemp(root, "server-*")
	if err != nil {
		return nil, err
	}
	s := &server{name: p.name, dir: dir, client: newClient(nil)}
	if err := p.start(ctx, s); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	time.Sleep(settle)
	return s, nil
}

// settle is after what time a server has done all that it does when it starts: ours tries its
// key, a quarter of a second of one processor and 64 MiB.
const settle = time.Second

func newClient(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
}

func (c config) serve(ctx context.Context, s *server) error {
	return c.startServe(ctx, s, filepath.Join(s.dir, "data"))
}

// startServe starts mlpromote serve without lines of requests, which no other server here has either.
func (c config) startServe(ctx context.Context, s *server, data string, flags ...string) error {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--log-level", "warn"}
	return start(ctx, s, nil, c.mlpromote, append(args, flags...)...)
}

// dockerRegistry starts distribution, whose configuration is the same since version 2.
// It is that of its own example, less its log of requests.
func dockerRegistry(ctx context.Context, s *server, program string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s.url = "http://" + address
	file := filepath.Join(s.dir, "config.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  cache: {blobdescriptor: inmemory}
  filesystem: {rootdirectory: %s}
http:
  addr: %s
  secret: only-for-this-process
`, filepath.Join(s.dir, "data"), address), 0o600); err != nil {
		return err
	}
	return start(ctx, s, []string{"OTEL_TRACES_EXPORTER=none"}, program, "serve", file)
}

// nginxPeer is nginx over files that are named like the protocol's URLs.
func nginxPeer(files map[string]string, mediaType string) peer {
	return peer{static, func(ctx context.Context, s *server) error {
		return startNginx(ctx, s, files, mediaType, "http", "")
	}}
}

// nginxSecuredPeer is the same with TLS, and with a certificate of the same kind as ours.
func nginxSecuredPeer(files map[string]string, mediaType string) peer {
	return peer{staticBy, func(ctx context.Context, s *server) error {
		certificate, key := filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key")
		roots, err := makeCertificate(certificate, key)
		if err != nil {
			return err
		}
		s.client = newClient(roots)
		return startNginx(ctx, s, files, mediaType, "https", fmt.Sprintf(" ssl; ssl_certificate %s; ssl_certificate_key %s", certificate, key))
	}}
}

// startNginx starts nginx. listen is what the configuration says after the address.
func startNginx(ctx context.Context, s *server, files map[string]string, mediaType, scheme, listen string) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s.url = scheme + "://" + address
	root := filepath.Join(s.dir, "root")
	for name, content := range files {
		place := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o755), os.Link(content, place)); err != nil {
			return err
		}
	}
	file := filepath.Join(s.dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, s.dir, mediaType, address+listen, root), 0o600); err != nil {
		return err
	}
	return start(ctx, s, nil, "/usr/sbin/nginx", "-e", "stderr", "-c", file)
}

// What Debian's configuration says, less the log, and with connections that stay.
const nginxConfig = `daemon off;
user root;
pid %[1]s/pid;
worker_processes auto;
error_log stderr;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  default_type %[2]s;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  server { listen %[3]s; root %[4]s; }
}
`

// emptyPeer is this program, answering with an empty document.
func emptyPeer() peer {
	return peer{nothing, func(ctx context.Context, s *server) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return start(ctx, s, nil, self, "-empty-handler")
	}}
}

// serveNothing is what emptyPeer starts.
func serveNothing(ctx context.Context) error {
	router := chi.NewRouter()
	router.Get("/*", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "http://"+listener.Addr().String())
	server := &http.Server{Handler: router, ReadHeaderTimeout: startTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
