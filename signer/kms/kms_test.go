package kms_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/kms"
)

// keyVariable has the private key of the plugin, in PEM.
const keyVariable = "SIGSTORE_KMS_TRY_KEY"

// The test program is its own plugin: sigstore-kms-try is a link to it.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "sigstore-kms-") {
		os.Exit(plugin())
	}
	os.Exit(withPlugin(m))
}

func withPlugin(m *testing.M) int {
	dir, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	text, err := cryptoutils.MarshalPrivateKeyToPEM(key)
	if err := errors.Join(err, os.Symlink(self, filepath.Join(dir, "sigstore-kms-try")),
		os.Setenv("PATH", dir), os.Setenv(keyVariable, string(text))); err != nil {
		panic(err)
	}
	return m.Run()
}

// plugin is one call of the plugin.
func plugin() int {
	args, err := handler.GetPluginArgs(os.Args)
	if err == nil && args.InitOptions.CtxDeadline != nil {
		err = errors.New("the deadline of the first call would hold for all")
	}
	if err != nil {
		_ = handler.WriteErrorResponse(os.Stdout, err)
		return 1
	}
	_, err = handler.Dispatch(os.Stdout, os.Stdin, args, module(args.InitOptions.KeyResourceID))
	if err != nil {
		return 1
	}
	return 0
}

// module is a hardware module. Its name says how well it works.
type module string

func (m module) key(curve elliptic.Curve) (*ecdsa.PrivateKey, error) {
	if curve != nil {
		return ecdsa.GenerateKey(curve, rand.Reader)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey([]byte(os.Getenv(keyVariable)), nil)
	if err != nil {
		return nil, err
	}
	return key.(*ecdsa.PrivateKey), nil
}

func (m module) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	var curve elliptic.Curve
	switch m {
	case "absent":
		return nil, errors.New("the module is not plugged in")
	case "p384":
		curve = elliptic.P384()
	}
	key, err := m.key(curve)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

func (m module) SignMessage(message io.Reader, _ ...signature.SignOption) ([]byte, error) {
	data, err := io.ReadAll(message)
	if err != nil {
		return nil, err
	}
	var curve elliptic.Curve
	switch m {
	case "unplugged":
		return nil, errors.New("the module was unplugged")
	case "garbage":
		return []byte("signed"), nil
	case "another":
		curve = elliptic.P256()
	}
	key, err := m.key(curve)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(data)
	return key.Sign(rand.Reader, digest[:], crypto.SHA256)
}

func (module) VerifySignature(_, _ io.Reader, _ ...signature.VerifyOption) error {
	return errors.New("not asked for")
}

func (module) CreateKey(context.Context, string) (crypto.PublicKey, error) {
	return nil, errors.New("not asked for")
}

func (module) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, errors.New("not asked for")
}

func (module) SupportedAlgorithms() []string { return []string{"P-256"} }

func (module) DefaultAlgorithm() string { return "P-256" }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "builder"+kms.Extension)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func statement(t *testing.T) []byte {
	t.Helper()
	subject := evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString(t.Name()))}
	s, err := evidence.NewStatement(evidence.PredicateSign, struct{}{}, subject)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the module signs counts for its public key, and for no other.
func TestSign(t *testing.T) {
	t.Parallel()
	s, err := kms.Open(t.Context(), write(t, "try://good\n"))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := s.Sign(t.Context(), statement(t))
	if err != nil {
		t.Fatal(err)
	}
	trust, err := signer.NewTrust(
		[]trust.TrustEntry{{Key: "k", Roles: evidence.Roles(), Resources: []string{"oci://local/"}}},
		func(string) ([]byte, error) { return s.PublicKeyPEM(), nil })
	if err != nil {
		t.Fatal(err)
	}
	claim, err := trust.Verify(t.Context(), bundle, "oci://local/prod/digits")
	if err != nil || claim.Signer != s.KeyID() {
		t.Errorf("signer %q, error %v; want %q", claim.Signer, err, s.KeyID())
	}
}

// A module that does not do what it is asked for gives an error, and no bundle.
func TestSignFails(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"unplugged": "try://unplugged: plugin returned error: the module was unplugged",
		"garbage":   "does not verify with the public key",
		"another":   "does not verify with the public key",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := kms.OpenURI(t.Context(), "try://"+name)
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.Sign(t.Context(), statement(t))
			if bundle != nil || !registry.HasCode(err, registry.CodeUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %d bytes and error %v, want no bundle and CodeUnavailable: %s", len(bundle), err, want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		code registry.Code
		want string
	}{
		"another curve":       {"try://p384", registry.CodeInvalid, "want ECDSA P-256, found another curve"},
		"absent":              {"try://absent", registry.CodeUnavailable, "the module is not plugged in"},
		"no plugin":           {"nothere://key", registry.CodeInvalid, "there is no provider for nothere://key"},
		"a provider not here": {"awskms:///alias/key", registry.CodeInvalid, "there is no provider for awskms:///alias/key"},
		"a private key":       {"-----BEGIN PRIVATE KEY-----\n", registry.CodeInvalid, "want a URI such as awskms:///alias/NAME"},
		"empty":               {"", registry.CodeInvalid, "want a file with the URI of a key"},
		"two lines":           {"try://good\ntry://other\n", registry.CodeInvalid, "want a URI"},
		"a path":              {"../try://good", registry.CodeInvalid, "want a URI"},
		"too long":            {"try://" + strings.Repeat("k", 2000), registry.CodeInvalid, "want a URI"},
		"a password":          {"hashivault://me:secret@vault/key", registry.CodeInvalid, "the URI of the key has a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := kms.Open(t.Context(), write(t, c.text))
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s: %s", err, c.code, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("error %v shows the password", err)
			}
		})
	}
}

func TestOpenMissing(t *testing.T) {
	t.Parallel()
	if _, err := kms.Open(t.Context(), filepath.Join(t.TempDir(), "builder.kms")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist in its chain", err)
	}
}

// Whoever lacks a provider is told with which tag to build, and the name of the plugin.
func TestHints(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"gcpkms://projects/p": "go build -tags kms_gcp",
		"openbao://key":       "go build -tags kms_vault",
		"nothere://key":       "put the plugin sigstore-kms-nothere on PATH",
	} {
		_, err := kms.OpenURI(t.Context(), uri)
		if hints := strings.Join(registry.Hints(err), " "); !strings.Contains(hints, want) {
			t.Errorf("%s: hints %q, want %q", uri, hints, want)
		}
	}
}
