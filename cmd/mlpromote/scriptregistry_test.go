//go:build cgo

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2/registry/remote"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// What the registry of the kind login wants.
const (
	loginUser   = "alice"
	loginSecret = "correct-horse"
)

// cmdRegistry starts a registry by others and sets VAR to its host. Kinds are:
//
//	plain      in memory, without the referrers API
//	referrers  in memory, with it
//	login      as plain, for loginUser with loginSecret alone; login=USER:SECRET for another
//	frozen     as plain, and refuses the tags of repositories that the file $WORK/frozen names
//	debian     Debian's docker-registry, on disk
func cmdRegistry(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	if args[1] == "debian" {
		ts.Setenv(args[0], startDebian(ts))
		return
	}
	server := httptest.NewServer(registryOf(ts, args[1]))
	ts.Defer(server.Close)
	ts.Setenv(args[0], strings.TrimPrefix(server.URL, "http://"))
}

func registryOf(ts *testscript.TestScript, kind string) http.Handler {
	silent := containerregistry.Logger(log.New(io.Discard, "", 0))
	plain := containerregistry.New(silent)
	kind, login, _ := strings.Cut(kind, "=")
	switch kind {
	case "plain":
		return plain
	case "referrers":
		return containerregistry.New(silent, containerregistry.WithReferrersSupport(true))
	case "login":
		return withLogin(plain, cmp.Or(login, loginUser+":"+loginSecret))
	case "frozen":
		return frozen(plain, filepath.Join(ts.Getenv("WORK"), "frozen"))
	}
	ts.Fatalf("no registry of the kind %s", kind)
	return nil
}

// withLogin lets in one user, of the form USER:SECRET.
func withLogin(inner http.Handler, login string) http.Handler {
	wanted := sha256.Sum256([]byte(login))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		if got := sha256.Sum256([]byte(user + ":" + secret)); subtle.ConstantTimeCompare(got[:], wanted[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// frozen refuses to set tags, other than those that stand for lists of referrers, in the
// repositories that stand in a file.
func frozen(inner http.Handler, file string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names, _ := os.ReadFile(file) // no file freezes nothing
		repository, tag, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		if r.Method == http.MethodPut && tag != "" && !strings.HasPrefix(tag, "sha256") && slices.Contains(strings.Fields(string(names)), repository) {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"frozen"}]}`, http.StatusForbidden)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// startDebian starts docker-registry for a script.
func startDebian(ts *testscript.TestScript) string {
	host, stop, err := registrytest.DockerRegistry(filepath.Join(ts.Getenv("WORK"), "docker-registry"))
	ts.Check(err)
	ts.Defer(stop)
	return host
}

// cmdService serves the data directory of the script's folder and sets VAR to its host.
func cmdService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "mlpromote", "serve", "--listen", "127.0.0.1:0")
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), programtest.Environment(ts.Getenv("WORK"), ts.Getenv("MLPROMOTE_CACHE"))...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		stop()
		_ = cmd.Wait() // it was interrupted
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	ts.Setenv(args[0], strings.TrimPrefix(strings.TrimSpace(url), "http://"))
}

// cmdTag sets VAR to the digest that a tag names: tag VAR HOST/REPOSITORY TAG.
func cmdTag(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	desc, err := repositoryAt(ts, args[1]).Resolve(context.Background(), args[2])
	ts.Check(err)
	ts.Setenv(args[0], string(desc.Digest))
}

// cmdSetTag makes a tag name what another names: set-tag HOST/REPOSITORY TAG OTHER.
func cmdSetTag(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	ctx := context.Background()
	repo := repositoryAt(ts, args[0])
	desc, err := repo.Resolve(ctx, args[2])
	ts.Check(err)
	ts.Check(repo.Tag(ctx, desc, args[1]))
}

// cmdUnlist takes evidence out of the list of referrers that a registry without the referrers API keeps in a tag, as anyone
// who may push there can: unlist HOST/REPOSITORY SUBJECT PREDICATE-TYPE.
func cmdUnlist(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, 3)
	ctx := context.Background()
	repo, tag := repositoryAt(ts, args[0]), strings.Replace(args[1], ":", "-", 1)
	_, list, err := repo.FetchReference(ctx, tag)
	ts.Check(err)
	var index ocispec.Index
	ts.Check(json.NewDecoder(list).Decode(&index))
	ts.Check(list.Close())
	listed := len(index.Manifests)
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Annotations["dev.sigstore.bundle.predicateType"] == args[2]
	})
	if len(index.Manifests) == listed {
		ts.Fatalf("%s lists nothing of %s among %d referrers of %s", args[0], args[2], listed, args[1])
	}
	data, err := json.Marshal(index)
	ts.Check(err)
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(data), Size: int64(len(data))}
	ts.Check(repo.PushReference(ctx, desc, bytes.NewReader(data), tag))
}

// cmdRotateTags makes every tag of HOST/REPO name what the next one names.
func cmdRotateTags(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ctx := context.Background()
	repo := repositoryAt(ts, args[0])
	var tags []string
	ts.Check(repo.Tags(ctx, "", func(some []string) error {
		tags = append(tags, some...)
		return nil
	}))
	named := make([]ocispec.Descriptor, len(tags))
	for i, tag := range tags {
		desc, err := repo.Resolve(ctx, tag)
		ts.Check(err)
		named[i] = desc
	}
	for i, tag := range tags {
		ts.Check(repo.Tag(ctx, named[(i+1)%len(named)], tag))
	}
}

func repositoryAt(ts *testscript.TestScript, name string) *remote.Repository {
	repo, err := remote.NewRepository(name)
	ts.Check(err)
	repo.PlainHTTP = true
	return repo
}

// cmdJobOn copies digits for one target, unbuilt, goes there, and puts the content of
// staging and prod on registries; "-" leaves it in the data directory.
func cmdJobOn(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	dir := filepath.Join(ts.Getenv("WORK"), "digits")
	ts.Check(programtest.Digits(dir))
	on := func(host string) string {
		if host == "-" {
			return ""
		}
		return "registry: " + host
	}
	text := fmt.Sprintf("registry: local\nenvironments:\n  staging: {%s}\n  prod: {from: staging, %s}\ntrust:\n"+
		"  - {key: keys/local.pub, roles: [builder, verifier, approver, promoter], resources: [\"oci://local/\"]}\n", on(args[0]), on(args[1]))
	ts.Check(os.MkdirAll(filepath.Join(dir, ".mlpromote"), 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, ".mlpromote", "environments.yaml"), []byte(text), 0o600))
	ts.Check(ts.Chdir(dir))
}

// cmdDockerConfig writes a docker config with a credential for a host into a folder:
// docker-config DIR HOST USER SECRET.
func cmdDockerConfig(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	entry := map[string]string{"username": args[2], "password": args[3]}
	data, err := json.Marshal(map[string]any{"auths": map[string]any{args[1]: entry}})
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600))
}
