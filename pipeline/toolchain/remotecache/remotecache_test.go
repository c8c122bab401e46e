package remotecache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/remotecache"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// bent is a repository that answers with other bytes for one digest.
type bent struct {
	*memory.Store
	at registry.Digest
}

func (b *bent) Fetch(ctx context.Context, target ocispec.Descriptor) (io.ReadCloser, error) {
	rc, err := b.Store.Fetch(ctx, target)
	if err != nil || target.Digest != b.at {
		return rc, err
	}
	defer rc.Close()
	text, err := io.ReadAll(rc)
	text[len(text)/2] ^= 1
	return io.NopCloser(bytes.NewReader(text)), err
}

// options sign by passing on and trust as said: who checks signatures is another package.
func options(repository remotecache.Repository, roles ...evidence.Role) remotecache.Options {
	return remotecache.Options{
		Repository: repository, Name: "oci://test/cache", Resource: "oci://local/staging/m",
		Sign: func(_ context.Context, role evidence.Role, statement []byte) ([]byte, error) {
			if role != evidence.RoleBuilder {
				return nil, errors.New("signed as " + string(role))
			}
			return statement, nil
		},
		Verify: func(_ context.Context, bundle []byte, resource string) (evidence.Claim, error) {
			if len(roles) == 0 || resource != "oci://local/staging/m" {
				return evidence.Claim{}, registry.Errorf(registry.CodeTrust, "nobody whom we know")
			}
			claim := evidence.Claim{Signer: "somebody", Roles: roles, Key: evidence.KeyTrusted}
			return claim, json.Unmarshal(bundle, &claim.Statement)
		},
	}
}

func outcome(t *testing.T) toolchain.Outcome {
	t.Helper()
	o := toolchain.Outcome{Key: digest.FromString("key"), Result: json.RawMessage(`{"n":1}`), Elapsed: 42}
	for _, name := range []string{"deep/table.json", "model.onnx"} {
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		d, size, err := toolchain.HashFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o.Files = append(o.Files, toolchain.OutputFile{Name: name, Path: path, Digest: d, Size: size})
	}
	return o
}

func TestShared(t *testing.T) {
	t.Parallel()
	made := outcome(t)
	about := toolchain.About{Verb: toolchain.VerbCompile, Tool: "echo 1.0"}
	for name, c := range map[string]struct {
		roles   []evidence.Role
		key     evidence.KeyState // empty: trusted
		bend    func(entry ocispec.Manifest) registry.Digest
		ignored string // empty: the entry counts
	}{
		"a builder's":         {roles: []evidence.Role{evidence.RoleBuilder}},
		"a verifier's":        {roles: []evidence.Role{evidence.RoleVerifier}, ignored: "no trusted builder"},
		"a revoked builder's": {roles: []evidence.Role{evidence.RoleBuilder}, key: evidence.KeyRevoked, ignored: "no trusted builder"},
		"a retired builder's": {roles: []evidence.Role{evidence.RoleBuilder}, key: evidence.KeyRetired, ignored: "no trusted builder"},
		"a stranger's":        {ignored: "no trusted builder"},
		"a file changed":      {roles: []evidence.Role{evidence.RoleBuilder}, bend: func(m ocispec.Manifest) registry.Digest { return m.Layers[2].Digest }, ignored: "their bytes"},
		"the record changed":  {roles: []evidence.Role{evidence.RoleBuilder}, bend: func(m ocispec.Manifest) registry.Digest { return m.Config.Digest }, ignored: "their bytes"},
		"the bundle changed":  {roles: []evidence.Role{evidence.RoleBuilder}, bend: func(m ocispec.Manifest) registry.Digest { return m.Layers[0].Digest }, ignored: "their bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &bent{Store: memory.New()}
			if err := remotecache.New(options(store, evidence.RoleBuilder)).Save(t.Context(), about, made); err != nil {
				t.Fatal(err)
			}
			if c.bend != nil {
				store.at = c.bend(entry(t, store))
			}
			o := options(store, c.roles...)
			if verify := o.Verify; c.key != "" {
				o.Verify = func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error) {
					claim, err := verify(ctx, bundle, resource)
					claim.Key = c.key
					return claim, err
				}
			}
			steps := remotecache.New(o)
			out := filepath.Join(t.TempDir(), "out")
			got, err := steps.Load(t.Context(), made.Key, out)
			if err := steps.Trouble(); err != nil {
				t.Errorf("trouble: %v", err)
			}
			if c.ignored != "" {
				if !registry.HasCode(err, registry.CodeNotFound) || !ignored(steps, c.ignored) {
					t.Errorf("error %v, ignored %v; want CodeNotFound and %q", err, steps.Ignored(), c.ignored)
				}
				if files, _ := toolchain.Collect(out); len(files) > 0 {
					t.Errorf("left behind: %v", files)
				}
				return
			}
			files, collected := toolchain.Collect(out)
			if err != nil || collected != nil || len(files) != 2 || files[1].Digest != made.Files[1].Digest || !got.Cached ||
				got.Origin != (toolchain.Origin{Cache: "oci://test/cache", Signer: "somebody"}) || string(got.Result) != `{"n":1}` || got.Elapsed != 42 {
				t.Errorf("outcome %+v, files %v (%v)", got, files, err)
			}
		})
	}
}

// Who only reads keeps nothing.
func TestSharedReadOnly(t *testing.T) {
	t.Parallel()
	store := &bent{Store: memory.New()}
	o := options(store, evidence.RoleBuilder)
	o.Sign = nil
	if err := remotecache.New(o).Save(t.Context(), toolchain.About{}, outcome(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Resolve(t.Context(), "step-"+digest.FromString("key").Encoded()); err == nil {
		t.Error("an entry was kept")
	}
}

func ignored(steps *remotecache.Steps, why string) bool {
	for reason, n := range steps.Ignored() {
		if n == 1 && strings.Contains(reason, why) {
			return true
		}
	}
	return false
}

// entry is the manifest of the one entry.
func entry(t *testing.T, store *bent) ocispec.Manifest {
	t.Helper()
	desc, err := store.Resolve(t.Context(), "step-"+digest.FromString("key").Encoded())
	if err != nil {
		t.Fatal(err)
	}
	rc, err := store.Fetch(t.Context(), desc)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var m ocispec.Manifest
	if err := json.NewDecoder(rc).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}
