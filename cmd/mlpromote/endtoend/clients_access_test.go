//go:build cgo

package endtoend

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// guarded is a service that asks who comes, over TLS with a certificate of a CA of its
// own, with a promoted release.
type guarded struct {
	*plain
	ca       string // file
	node, ci string // tokens: of one who reads prod, and of one who reads and pushes staging
}

// TestClientsWithCredentials uses the service with programs and libraries that know
// nothing of mlpromote, and have a token for a password.
func TestClientsWithCredentials(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for name, test := range map[string]func(*testing.T, *guarded){
		"oras-go": guardedOras, "go-containerregistry": guardedContainerRegistry, "cosign": guardedCosign,
		"oras": guardedOrasProgram, "crane": guardedCrane, "regctl": guardedRegctl, "skopeo": guardedSkopeo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, g)
		})
	}
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	root := t.TempDir()
	certificates := filepath.Join(root, "tls")
	if err := registrytest.Certificate(certificates, "x"); err != nil {
		t.Fatal(err)
	}
	g := &guarded{
		ca:    filepath.Join(certificates, "ca.pem"),
		plain: &plain{Service: programtest.NewService(t, programtest.Program(t), root), dir: filepath.Join(root, "digits")},
	}
	g.Flags = []string{"--tls-cert", filepath.Join(certificates, "tls.crt"), "--tls-key", filepath.Join(certificates, "tls.key")}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	create := func(args ...string) string {
		return g.must(t, append([]string{"token", "create", "--data", g.Dir}, args...)...)
	}
	admin := create("admin", "--allow", "administer")
	g.node = create("node", "--allow", "read", "--env", "prod")
	g.ci = create("ci", "--allow", "read,push", "--env", "staging", "--model", "vision/**")
	g.MustStartAndStop(t)
	g.Env = append(g.Env, "MLPROMOTE_CA="+g.ca, "MLPROMOTE_TOKEN="+admin)
	g.promote(t)
	return g
}

// transport trusts the service's CA.
func (g *guarded) transport(t *testing.T) *http.Transport {
	t.Helper()
	data, err := os.ReadFile(g.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data)
	made := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(made.CloseIdleConnections)
	return made
}

// program is a stock program that trusts the service's CA and has a token in its docker
// config, or none if it is empty.
func (g *guarded) program(t *testing.T, name, token string) *stock {
	t.Helper()
	s := newStock(t, name)
	s.env = append(s.env, "SSL_CERT_FILE="+g.ca, "REGISTRY_AUTH_FILE="+filepath.Join(s.dir, "config.json"))
	if token != "" {
		s.writeFile(t, "config.json", fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, g.Host(), base64.StdEncoding.EncodeToString([]byte("anybody:"+token))))
	}
	return s
}

// as is a repository as oras-go sees it with a password.
func (g *guarded) as(t *testing.T, repository, password string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(g.Host() + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	repo.Client = &auth.Client{
		Client: &http.Client{Transport: g.transport(t)}, Cache: auth.NewCache(),
		Credential: auth.StaticCredential(g.Host(), auth.Credential{Username: "anybody", Password: password}),
	}
	return repo
}

func guardedOras(t *testing.T, g *guarded) {
	dir := t.TempDir()
	folder, err := file.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = oras.Copy(t.Context(), g.as(t, "prod/vision/digits", g.node), string(g.engine), folder, string(g.engine), oras.DefaultCopyOptions)
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	g.wantFiles(t, dir)

	data := []byte("a blob")
	blob := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(data), Size: int64(len(data))}
	push := func(repository, password string) error {
		return g.as(t, repository, password).Push(t.Context(), blob, bytes.NewReader(data))
	}
	if err := push("staging/vision/mine", g.ci); err != nil {
		t.Errorf("push with the token of CI: %v", err)
	}
	for what, c := range map[string]struct {
		err    error
		status int
	}{
		"push with the token of a node": {push("staging/vision/mine", g.node), 403},
		"push to prod":                  {push("prod/vision/mine", g.ci), 403},
		"push another model":            {push("staging/text/mood", g.ci), 403},
		"push with no such token":       {push("staging/vision/mine", g.ci+"x"), 401},
	} {
		var response *errcode.ErrorResponse
		if !errors.As(c.err, &response) || response.StatusCode != c.status {
			t.Errorf("%s: %v, want %d", what, c.err, c.status)
		}
	}
	if _, err := g.as(t, "staging/vision/digits", g.node).Resolve(t.Context(), "1.0.0"); err == nil {
		t.Error("a node of prod reads staging")
	}
}

func guardedContainerRegistry(t *testing.T, g *guarded) {
	ref, err := name.ParseReference(g.prod)
	if err != nil {
		t.Fatal(err)
	}
	options := func(password string) []ggcr.Option {
		return []ggcr.Option{
			ggcr.WithContext(t.Context()), ggcr.WithTransport(g.transport(t)),
			ggcr.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "anybody", Password: password})),
		}
	}
	got, err := ggcr.Get(ref, options(g.node)...)
	if err != nil || !bytes.Equal(got.Manifest, g.exact) {
		t.Fatalf("the manifest is %v, error %v", got, err)
	}
	copied, err := name.ParseReference(g.Host() + "/staging/vision/copied:1")
	if err != nil {
		t.Fatal(err)
	}
	staged, err := name.ParseReference(g.staged)
	if err != nil {
		t.Fatal(err)
	}
	image, err := ggcr.Image(staged, options(g.ci)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.Write(copied, image, options(g.ci)...); err != nil {
		t.Errorf("CI copies an engine: %v", err)
	}
	for what, c := range map[string]struct {
		err    error
		status int
	}{
		"write as a node":   {ggcr.Write(copied, image, options(g.node)...), 403},
		"read as nobody":    {second(ggcr.Get(ref, ggcr.WithContext(t.Context()), ggcr.WithTransport(g.transport(t)))), 401},
		"read as a passer":  {second(ggcr.Get(ref, options("x")...)), 401},
		"read what is CI's": {second(ggcr.Get(staged, options(g.node)...)), 403},
	} {
		var response *transport.Error
		if !errors.As(c.err, &response) || response.StatusCode != c.status {
			t.Errorf("%s: %v, want %d", what, c.err, c.status)
		}
	}
}

func second(_ *ggcr.Descriptor, err error) error { return err }

func guardedCosign(t *testing.T, g *guarded) {
	public := filepath.Join(g.Dir, "keys", "local.pub")
	for _, verb := range [][]string{{"verify"}, {"verify-attestation", "--type", evidence.PredicateParity}} {
		args := append(verb, "--key", public, "--insecure-ignore-tlog")
		g.program(t, "cosign", g.node).must(t, append(args, g.prod)...)
		g.program(t, "cosign", g.node).fails(t, "may not read", append(args, g.staged)...)
		g.program(t, "cosign", "").fails(t, "none was sent", append(args, g.prod)...)
	}
}

func guardedOrasProgram(t *testing.T, g *guarded) {
	node := g.program(t, "oras", "")
	if _, told, err := node.try(t, []byte(g.node), "login", g.Host(), "--username", "anybody", "--password-stdin"); err != nil {
		t.Fatalf("login: %v\n%s", err, told)
	}
	node.must(t, "pull", g.prod, "-o", "pulled")
	g.wantFiles(t, filepath.Join(node.dir, "pulled"))
	wantWords(t, "the repositories of prod, and no other name", node.must(t, "repo", "ls", g.Host()), "prod/vision/digits")
	node.writeFile(t, "note.txt", []byte("hello"))
	node.fails(t, "Forbidden", "push", g.Host()+"/staging/vision/notes:1", "note.txt")
	stranger := g.program(t, "oras", "")
	if _, _, err := stranger.try(t, []byte("x"), "login", g.Host(), "--username", "anybody", "--password-stdin"); err == nil {
		t.Error("oras login takes a password that is no token")
	}
	stranger.fails(t, "", "pull", g.prod, "-o", "pulled")
	stranger.fails(t, "", "repo", "ls", g.Host())
	ci := g.program(t, "oras", g.ci)
	ci.writeFile(t, "note.txt", []byte("hello"))
	ci.must(t, "push", g.Host()+"/staging/vision/notes:1", "note.txt")
	ci.fails(t, "Forbidden", "push", g.Host()+"/prod/vision/notes:1", "note.txt")
	listed := strings.Fields(ci.must(t, "repo", "ls", g.Host()))
	if !slices.Contains(listed, "staging/vision/digits") || !slices.Contains(listed, "staging/vision/notes") || strings.Contains(fmt.Sprint(listed), "prod/") {
		t.Errorf("ci sees %q, want what is in staging", listed)
	}
}

func guardedCrane(t *testing.T, g *guarded) {
	crane := g.program(t, "crane", "")
	if _, told, err := crane.try(t, []byte(g.node), "auth", "login", g.Host(), "-u", "anybody", "--password-stdin"); err != nil {
		t.Fatalf("login: %v\n%s", err, told)
	}
	wantWords(t, "the release", crane.must(t, "digest", g.Host()+"/prod/vision/digits:1.0.0"), string(g.release))
	crane.fails(t, "may not read", "manifest", g.staged)
	wantWords(t, "the repositories of prod", crane.must(t, "catalog", g.Host()), "prod/vision/digits")
	g.program(t, "crane", g.ci).must(t, "copy", g.staged, g.Host()+"/staging/vision/craned:1")
	g.program(t, "crane", g.ci).fails(t, "Forbidden", "copy", g.staged, g.Host()+"/prod/vision/craned:1")
	g.program(t, "crane", "").fails(t, "none was sent", "manifest", g.prod)
}

func guardedRegctl(t *testing.T, g *guarded) {
	regctl := g.program(t, "regctl", g.node)
	regctl.must(t, "manifest", "get", g.prod)
	regctl.fails(t, "", "manifest", "get", g.staged)
	wantWords(t, "the repositories of prod", regctl.must(t, "repo", "ls", g.Host()), "prod/vision/digits")
	g.program(t, "regctl", "").fails(t, "", "repo", "ls", g.Host())
	g.program(t, "regctl", "").fails(t, "", "manifest", "get", g.prod)
}

func guardedSkopeo(t *testing.T, g *guarded) {
	skopeo := g.program(t, "skopeo", "")
	if _, told, err := skopeo.try(t, []byte(g.node), "login", "--username", "anybody", "--password-stdin", g.Host()); err != nil {
		t.Fatalf("login: %v\n%s", err, told)
	}
	if raw := skopeo.must(t, "inspect", "--raw", "docker://"+g.prod); digest.FromString(raw) != g.engine {
		t.Errorf("the manifest is %s", raw)
	}
	skopeo.fails(t, "may not read", "inspect", "--raw", "docker://"+g.staged)
	g.program(t, "skopeo", "").fails(t, "", "inspect", "--raw", "docker://"+g.prod)
}
