package keyfile_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// One test pays for scrypt at its full cost: what is generated opens, with its
// password alone, and is not replaced.
func TestGenerateAndOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "keys")
	public, err := keyfile.Generate(dir, "local", []byte("s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "local.key")
	s, err := keyfile.Open(path, []byte("s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "local.pub"))
	if err != nil || !bytes.Equal(stored, public) || !bytes.Equal(s.PublicKeyPEM(), public) {
		t.Errorf("public keys differ: stored %s, returned %s, opened %s (%v)", stored, public, s.PublicKeyPEM(), err)
	}
	for _, password := range []string{"", "other"} {
		if _, err := keyfile.Open(path, []byte(password)); !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), path) {
			t.Errorf("password %q: error %v, want CodeInvalid that names %s", password, err, path)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Generate(dir, "local", nil); !registry.HasCode(err, registry.CodeConflict) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("generate again: %v, want CodeConflict and ErrExist", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("generate again changed the key (%v)", err)
	}
	wantNames(t, dir, "local.key", "local.pub")
}

// A password is sealed at the cost that makes it slow to guess, at least 2^16; without one there is
// nothing to guess.
func TestGenerateCost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, password string
		want           int
	}{
		{"a password", "s3cret", 1 << 16},
		{"a password of one space", " ", 1 << 16},
		{"no password", "", 1 << 15},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if _, err := keyfile.Generate(dir, "local", []byte(test.password)); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "local.key"))
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(data)
			if block == nil {
				t.Fatalf("no PEM block in %s", data)
			}
			var sealed struct {
				KDF struct{ Params struct{ N int } }
			}
			if err := json.Unmarshal(block.Bytes, &sealed); err != nil {
				t.Fatal(err)
			}
			if got := sealed.KDF.Params.N; got != test.want {
				t.Errorf("scrypt's N is %d, want %d", got, test.want)
			}
		})
	}
}

// Half a pair is left as it is, whichever half.
func TestGenerateKeepsHalves(t *testing.T) {
	t.Parallel()
	for _, there := range []string{"local.key", "local.pub"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, there), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := keyfile.Generate(dir, "local", nil); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), there) {
			t.Errorf("%s is there: error %v, want ErrExist that names it", there, err)
		}
		wantNames(t, dir, there)
	}
}

func TestGenerateRefusesNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "..", "../up", "a/b", `a\b`, ".hidden"} {
		dir := t.TempDir()
		if _, err := keyfile.Generate(dir, name, nil); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("name %q: error %v, want CodeInvalid", name, err)
		}
		wantNames(t, dir)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %v, want %v", dir, names, want)
	}
}

// seal encrypts a key at the least cost that is read, under the name that cosign 1 used.
func seal(t *testing.T, curve elliptic.Curve, kind string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypted.EncryptWithCustomKDFParameters(der, nil, encrypted.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: sealed})
}

func open(t *testing.T, data []byte) (signer.Signer, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "k.key")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return keyfile.Open(path, nil)
}

func TestOpenOldFormat(t *testing.T) {
	t.Parallel()
	s, err := open(t, seal(t, elliptic.P256(), "ENCRYPTED COSIGN PRIVATE KEY"))
	if err != nil {
		t.Fatal(err)
	}
	statement, err := evidence.NewStatement(evidence.PredicateSign, struct{}{},
		evidence.StatementSubject{Digest: evidence.NewDigestSet(digest.FromString("x"))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), statement); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesOtherCurves(t *testing.T) {
	t.Parallel()
	if _, err := open(t, seal(t, elliptic.P384(), "ENCRYPTED SIGSTORE PRIVATE KEY")); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), "P-256") {
		t.Errorf("error %v, want CodeInvalid that names P-256", err)
	}
}

// A file must not choose what its reader spends, nor how cheap a guess is. The cases
// that ask for terabytes would be noticed if they were derived.
func TestOpenRefusesCosts(t *testing.T) {
	t.Parallel()
	for name, params := range map[string][3]int{
		"weak":            {2, 8, 1},
		"half of legacy":  {1 << 14, 8, 1},
		"huge N":          {1 << 40, 8, 1},
		"huge r":          {1 << 16, 1 << 24, 1},
		"huge p":          {1 << 16, 8, 1 << 24},
		"negative":        {-1, -1, -1},
		"zero":            {0, 0, 0},
		"twice the owasp": {1 << 18, 8, 1},
	} {
		body, err := json.Marshal(map[string]any{
			"kdf":        map[string]any{"name": "scrypt", "params": map[string]int{"N": params[0], "r": params[1], "p": params[2]}, "salt": make([]byte, 32)},
			"cipher":     map[string]any{"name": "nacl/secretbox", "nonce": make([]byte, 24)},
			"ciphertext": make([]byte, 64),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = open(t, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: body}))
		if !registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), "scrypt parameters") {
			t.Errorf("%s: error %v, want CodeInvalid about scrypt parameters", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	block := func(kind, body string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(body)}))
	}
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(exchange)
	if err != nil {
		t.Fatal(err)
	}
	noSigner, err := encrypted.EncryptWithCustomKDFParameters(der, nil, encrypted.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	noKey, err := encrypted.EncryptWithCustomKDFParameters([]byte("no key"), nil, encrypted.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ data, says string }{
		"empty":     {"", "no PEM block"},
		"no PEM":    {"hello", "no PEM block"},
		"plain key": {block("PRIVATE KEY", "x"), `PEM block "PRIVATE KEY"`},
		"no JSON":   {block("ENCRYPTED SIGSTORE PRIVATE KEY", "x"), "is the password right?"},
		"no fields": {block("ENCRYPTED SIGSTORE PRIVATE KEY", "{}"), "is the password right?"},
		"other kdf": {block("ENCRYPTED SIGSTORE PRIVATE KEY", `{"kdf":{"name":"none"},"cipher":{"name":"nacl/secretbox"}}`), "is the password right?"},
		"two keys":  {strings.Repeat(block("ENCRYPTED SIGSTORE PRIVATE KEY", "{}"), 2), "there is more after the PEM block"},
		"too large": {block("ENCRYPTED SIGSTORE PRIVATE KEY", strings.Repeat("x", 1<<16)), "larger than"},
		"no key":    {block("ENCRYPTED SIGSTORE PRIVATE KEY", string(noKey)), "asn1"},
		"no signer": {block("ENCRYPTED SIGSTORE PRIVATE KEY", string(noSigner)), "want an ECDSA P-256 key"},
	} {
		if s, err := open(t, []byte(c.data)); !registry.HasCode(err, registry.CodeInvalid) || s != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: signer %v, error %v, want CodeInvalid with %q", name, s, err, c.says)
		}
	}
	if _, err := keyfile.Open(filepath.Join(t.TempDir(), "none.key"), nil); !errors.Is(err, fs.ErrNotExist) ||
		!registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("no file: %v, want CodeUnavailable and ErrNotExist", err)
	}
	if _, err := keyfile.Open(t.TempDir(), nil); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("a folder: %v, want CodeUnavailable", err)
	}
}

// A file of exactly as many bytes as allowed is read.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	const most = 16 << 10
	dir := t.TempDir()
	if _, err := keyfile.Generate(dir, "local", nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "local.key"))
	if err != nil {
		t.Fatal(err)
	}
	padded := func(size int) []byte { return append(bytes.Clone(data), bytes.Repeat([]byte("\n"), size-len(data))...) }
	if _, err := open(t, padded(most)); err != nil {
		t.Errorf("%d bytes: error %v, want none", most, err)
	}
	if s, err := open(t, padded(most+1)); s != nil || err == nil || !strings.Contains(err.Error(), "larger than 16384 bytes") {
		t.Errorf("%d bytes: signer %v, error %v; want one that says the size", most+1, s, err)
	}
}

// Where no file can be written, there is no key.
func TestGenerateNowhere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a file in place of the folder": file, "a folder of the kernel": "/proc/self/task"} {
		if public, err := keyfile.Generate(dir, "local", nil); public != nil || !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("%s: key %s, error %v; want CodeUnavailable", name, public, err)
		}
	}
}
