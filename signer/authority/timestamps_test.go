package authority_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// A signature has a timestamp that gives its claim a time.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	roots := stampsOf(t, a)
	s, err := signer.Sealed(newSigner(t), signer.Seal{
		Options: authority.Timestamps{URL: serve(t, a.Stamps(nil)) + "/api/v1/timestamp"}.Options, Roots: roots, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := s.Sign(t.Context(), statement(t))
	if err != nil {
		t.Fatal(err)
	}
	entry := trust.TrustEntry{Key: "k", Roles: evidence.Roles(), Resources: []string{"oci://local/"}}
	named, load, _ := roots()
	trust, err := signer.NewTrust([]trust.TrustEntry{entry}, func(path string) ([]byte, error) {
		if path == "k" {
			return s.PublicKeyPEM(), nil
		}
		return load(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := trust.WithRoots(named).Verify(t.Context(), bundle, resource)
	if at, by := claim.Time(); err != nil || by != evidence.TimeStamped || time.Since(at) > time.Minute {
		t.Errorf("got %v, time %s by %q, want now by a timestamp", err, at, by)
	}
}

// What an authority gets wrong is an error and no bundle.
func TestTimestampsRefused(t *testing.T) {
	t.Parallel()
	a, other := signertest.New(t), signertest.New(t)
	at := func(d time.Duration) http.Handler {
		return a.Stamps(func(*timestamp.Request) time.Time { return time.Now().Add(d) })
	}
	says := func(status int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		})
	}
	for name, c := range map[string]struct {
		authority http.Handler
		now       storage.Clock
		code      registry.Code
		again     bool
		want      string
	}{
		"another authority":            {other.Stamps(nil), time.Now, registry.CodeTrust, false, "the timestamp is not by an authority that roots in environments.yaml names"},
		"of another signature":         {a.Stamps(otherSignature), time.Now, registry.CodeTrust, false, "the timestamp is not by an authority"},
		"before its certificate":       {at(-time.Hour), time.Now, registry.CodeTrust, false, "the timestamp is not by an authority"},
		"after its certificate":        {at(time.Hour), time.Now, registry.CodeTrust, false, "the timestamp is not by an authority"},
		"a clock of ours that is late": {a.Stamps(nil), in(-6 * time.Minute), registry.CodeTrust, false, "and this machine's"},
		"a clock of ours that is fast": {a.Stamps(nil), in(6 * time.Minute), registry.CodeTrust, false, "and this machine's"},
		"busy":                         {says(503, "come\nback"), time.Now, registry.CodeUnavailable, true, `answers 503 Service Unavailable: "come back"`},
		"too many requests":            {says(429, ""), time.Now, registry.CodeUnavailable, true, "answers 429"},
		"refused":                      {says(400, "no"), time.Now, registry.CodeUnavailable, false, `answers 400 Bad Request: "no"`},
		"not there":                    {http.NotFoundHandler(), time.Now, registry.CodeUnavailable, false, "answers 404"},
		"elsewhere":                    {http.RedirectHandler("/", http.StatusTemporaryRedirect), time.Now, registry.CodeUnavailable, false, "redirects elsewhere"},
		"garbage":                      {says(200, "granted"), time.Now, registry.CodeUnavailable, false, "the answer of an authority cannot be used"},
		"nothing":                      {says(200, ""), time.Now, registry.CodeUnavailable, false, "the answer of an authority cannot be used"},
		"a rejection":                  {says(200, "\x30\x05\x30\x03\x02\x01\x02"), time.Now, registry.CodeUnavailable, false, "the answer of an authority cannot be used"},
		"too much":                     {says(200, strings.Repeat("x", 2<<20)), time.Now, registry.CodeUnavailable, false, "more than 1048576 bytes"},
		"an answer that ends":          {http.HandlerFunc(endsEarly), time.Now, registry.CodeUnavailable, true, "its answer ends early"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := signer.Sealed(newSigner(t),
				signer.Seal{Options: authority.Timestamps{URL: serve(t, c.authority)}.Options, Roots: stampsOf(t, a), Now: c.now})
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.Sign(t.Context(), statement(t))
			if bundle != nil || !registry.HasCode(err, c.code) || again(err) != c.again || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d bytes and %v (try again: %t), want none and %s (%t): %s", len(bundle), err, again(err), c.code, c.again, c.want)
			}
		})
	}
}

func otherSignature(r *timestamp.Request) time.Time {
	sum := sha256.Sum256([]byte("another"))
	r.HashedMessage = sum[:]
	return time.Now()
}

func endsEarly(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("begin"))
}

// Roots that name no authority refuse every timestamp, and a call that ends stops asking.
func TestTimestampsAsked(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	s, err := signer.Sealed(newSigner(t),
		signer.Seal{Options: authority.Timestamps{URL: serve(t, a.Stamps(nil))}.Options, Roots: trusted(nil), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), statement(t)); !registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "roots names none") {
		t.Errorf("got %v, want CodeTrust: roots names none", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		cancel()
		<-r.Context().Done()
	}))
	s, err = signer.Sealed(newSigner(t), signer.Seal{Options: authority.Timestamps{URL: waits}.Options, Roots: stampsOf(t, a), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(ctx, statement(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the call ended", err)
	}
	gone := authority.Timestamps{URL: "http://127.0.0.1:1/"}
	s, err = signer.Sealed(newSigner(t), signer.Seal{Options: gone.Options, Roots: stampsOf(t, a), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(t.Context(), statement(t)); !again(err) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want an error to try again: does not answer", err)
	}
}

func TestSealedRefuses(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	whole := signer.Seal{Options: authority.Timestamps{URL: "https://tsa.example.com"}.Options, Roots: stampsOf(t, a), Now: time.Now}
	for name, change := range map[string]func(*signer.Seal){
		"no options": func(s *signer.Seal) { s.Options = nil }, "no roots": func(s *signer.Seal) { s.Roots = nil }, "no clock": func(s *signer.Seal) { s.Now = nil },
		"a root that is none": func(s *signer.Seal) {
			s.Roots = trusted(map[string][]byte{"tsa.pem": []byte("x")}, trust.Root{Timestamps: "tsa.pem"})
		},
	} {
		seal := whole
		change(&seal)
		if _, err := signer.Sealed(newSigner(t), seal); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestLoadTimestamps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"an address":         {"url: https://tsa.example.com/api/v1/timestamp\n", ""},
		"without encryption": {"url: http://tsa.example.com\n", ""},
		"what it writes":     {authority.Timestamps{URL: "https://tsa.example.com"}.Text(), ""},
		"empty":              {"\n", "is empty"},
		"no address":         {"{}", "url"},
		"another key":        {"url: https://tsa.example.com\nuri: x\n", `unknown key "uri"`},
		"a password":         {"url: https://me:secret@tsa.example.com\n", "has a password or a query"},
		"a query":            {"url: https://tsa.example.com?token=secret\n", "has a password or a query"},
		"no scheme":          {"url: tsa.example.com\n", "want https://HOST"},
		"a file":             {"url: file:///etc/passwd\n", "want https://HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, authority.TimestampsFile), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := authority.LoadTimestamps(dir)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) ||
				!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := authority.LoadTimestamps(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist in the chain", err)
	}
}
