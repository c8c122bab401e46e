package signer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// stamping asks an authority for timestamps, and trusts a root.
func stamping(t testing.TB, a, trusted *signertest.Authority) signer.Seal {
	t.Helper()
	server := httptest.NewServer(a.Stamps(nil))
	t.Cleanup(server.Close)
	asked := sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: server.URL})
	roots := files{"root.json": trusted.Root(t)}
	return signer.Seal{
		Options: func(context.Context) sign.BundleOptions {
			return sign.BundleOptions{TimestampAuthorities: []*sign.TimestampAuthority{asked}}
		},
		Roots: func() ([]trust.Root, func(string) ([]byte, error), error) {
			return []trust.Root{{Sigstore: "root.json"}}, roots.load, nil
		},
		Now: time.Now,
	}
}

// A bundle that verifiers would not take is not returned.
func TestSealed(t *testing.T) {
	t.Parallel()
	a, other := signertest.New(t), signertest.New(t)
	for name, c := range map[string]struct {
		trusted *signertest.Authority
		change  func(*signer.Seal)
		want    string // part of the error; empty: none
	}{
		"sealed":             {a, func(*signer.Seal) {}, ""},
		"clocks a bit apart": {a, func(s *signer.Seal) { s.Now = func() time.Time { return time.Now().Add(time.Minute) } }, ""},
		"a clock behind":     {a, func(s *signer.Seal) { s.Now = func() time.Time { return time.Now().Add(-time.Hour) } }, "and this machine's"},
		"a clock ahead":      {a, func(s *signer.Seal) { s.Now = func() time.Time { return time.Now().Add(time.Hour) } }, "and this machine's"},
		"another root":       {other, func(*signer.Seal) {}, "is not by an authority that roots"},
		"no timestamp": {a, func(s *signer.Seal) {
			s.Options = func(context.Context) sign.BundleOptions { return sign.BundleOptions{} }
		}, "the bundle has no timestamp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seal := stamping(t, a, c.trusted)
			c.change(&seal)
			s, err := signer.Sealed(newSigner(t, newKey(t)), seal)
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.Sign(t.Context(), newStatement(t))
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want CodeTrust with %q", err, c.want)
			}
			if (bundle != nil) != (c.want == "") {
				t.Errorf("got a bundle of %d bytes with error %v", len(bundle), err)
			}
		})
	}
}

func TestSealedTakesAllOfASeal(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	for name, change := range map[string]func(*signer.Seal){
		"no options": func(s *signer.Seal) { s.Options = nil },
		"no roots":   func(s *signer.Seal) { s.Roots = nil },
		"no clock":   func(s *signer.Seal) { s.Now = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seal := stamping(t, a, a)
			change(&seal)
			if s, err := signer.Sealed(newSigner(t, newKey(t)), seal); s != nil || !registry.HasCode(err, registry.CodeInternal) {
				t.Errorf("got %v, error %v; want CodeInternal", s, err)
			}
		})
	}
	gone := stamping(t, a, a)
	gone.Roots = func() ([]trust.Root, func(string) ([]byte, error), error) {
		return nil, nil, registry.Errorf(registry.CodeUnavailable, "no environments.yaml")
	}
	if s, err := signer.Sealed(newSigner(t, newKey(t)), gone); s != nil || !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("roots that cannot be read: got %v, error %v; want CodeUnavailable", s, err)
	}
	if s, err := signer.Sealed(nil, stamping(t, a, a)); s != nil || !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("no signer: got %v, error %v; want CodeInternal", s, err)
	}
}

// refusing answers no request.
type refusing struct{ err error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// An error of the transport keeps its code. Any other answer that is no timestamp is one that will not get better.
func TestSealedByNobody(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	nonsense := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	t.Cleanup(nonsense.Close)
	for name, c := range map[string]struct {
		options sign.TimestampAuthorityOptions
		code    registry.Code
		says    string
	}{
		"the transport says why": {
			sign.TimestampAuthorityOptions{URL: "http://tsa.example.com", Transport: refusing{registry.Errorf(registry.CodeForbidden, "not with this token")}},
			registry.CodeForbidden, "not with this token",
		},
		"the transport fails": {
			sign.TimestampAuthorityOptions{URL: "http://tsa.example.com", Transport: refusing{errors.New("no route")}},
			registry.CodeUnavailable, "cannot be used: no route",
		},
		"no timestamp": {sign.TimestampAuthorityOptions{URL: nonsense.URL}, registry.CodeUnavailable, "the answer of an authority cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seal := stamping(t, a, a)
			seal.Options = func(context.Context) sign.BundleOptions {
				return sign.BundleOptions{TimestampAuthorities: []*sign.TimestampAuthority{sign.NewTimestampAuthority(&c.options)}}
			}
			s, err := signer.Sealed(newSigner(t, newKey(t)), seal)
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := s.Sign(t.Context(), newStatement(t))
			if !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.says) || bundle != nil {
				t.Errorf("a bundle of %d bytes, error %v; want code %s with %q", len(bundle), err, c.code, c.says)
			}
		})
	}
}
