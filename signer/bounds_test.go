package signer_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
)

// A bundle of exactly as many bytes as allowed is read.
func TestLargestBundle(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	good := forge(t, key, inToto, newStatement(t)).bytes(t)
	trust := trustOnly(t, newSigner(t, key))
	padded := func(size int) []byte { return append(bytes.Clone(good), bytes.Repeat([]byte(" "), size-len(good))...) }
	if _, err := trust.Verify(t.Context(), padded(signer.MaxBundle), resource); err != nil {
		t.Errorf("%d bytes: error %v, want none", signer.MaxBundle, err)
	}
	claim, err := trust.Verify(t.Context(), padded(signer.MaxBundle+1), resource)
	wantUntrusted(t, claim, err, "want at most 4194304")
}

// statementOf is a statement about subjects with these digests.
func statementOf(t *testing.T, subjects ...map[string]string) []byte {
	t.Helper()
	list := make([]any, len(subjects))
	for i, digests := range subjects {
		list[i] = map[string]any{"digest": digests}
	}
	data, err := json.Marshal(map[string]any{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://example.com/p", "subject": list})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStatementBounds(t *testing.T) {
	t.Parallel()
	hex := func(n int) string { return strings.Repeat("ab", n) }
	digests := func(n int) map[string]string {
		all := make(map[string]string, n)
		for i := range n {
			all[fmt.Sprintf("own%02d", i)] = "x"
		}
		return all
	}
	subjects := func(n int) []map[string]string {
		all := make([]map[string]string, n)
		for i := range all {
			all[i] = map[string]string{"sha256": hex(32)}
		}
		return all
	}
	s := newSigner(t, newKey(t))
	for name, c := range map[string]struct {
		statement []byte
		says      string // empty: it is signed
	}{
		"most subjects":             {statementOf(t, subjects(1024)...), ""},
		"too many subjects":         {statementOf(t, subjects(1025)...), "1025 subjects, want at most 1024"},
		"most digests":              {statementOf(t, digests(32)), ""},
		"too many digests":          {statementOf(t, digests(33)), "33 digests, want 1 to 32"},
		"sha384":                    {statementOf(t, map[string]string{"sha384": hex(48)}), ""},
		"sha512":                    {statementOf(t, map[string]string{"sha512": hex(64)}), ""},
		"sha512, as long as sha256": {statementOf(t, map[string]string{"sha512": hex(32)}), "lower-case hex of its full length"},
		"sha384 that is no hex":     {statementOf(t, map[string]string{"sha384": strings.Repeat("xy", 48)}), "lower-case hex of its full length"},
		"a bad digest beside one":   {statementOf(t, map[string]string{"sha256": hex(32), "own": ""}), "lower-case hex"},
		"a bad second subject":      {statementOf(t, map[string]string{"sha256": hex(32)}, map[string]string{"sha256": hex(31)}), "subject 1: digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Sign(t.Context(), c.statement)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case c.says != "" && (!registry.HasCode(err, registry.CodeInvalid) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want CodeInvalid with %q", err, c.says)
			}
		})
	}
}

func TestPublicKeyBounds(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	pem := s.PublicKeyPEM()
	padded := func(size int) []byte { return append(bytes.Clone(pem), bytes.Repeat([]byte("\n"), size-len(pem))...) }
	if id, err := signer.KeyID(padded(16 << 10)); id != s.KeyID() || err != nil {
		t.Errorf("a file of 16 KiB: key %q, error %v; want %s", id, err, s.KeyID())
	}
	if _, err := signer.KeyID(padded(16<<10 + 1)); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a larger file: error %v, want CodeInvalid", err)
	}
}

// remote is a key behind an interface, such as one in a device.
type remote struct {
	public crypto.PublicKey
	err    error
}

func (r remote) Public() crypto.PublicKey { return r.public }

func (r remote) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return nil, r.err }

func TestKeysThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("the device is gone")
	s, err := signer.New(remote{newKey(t).Public(), broken})
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err := s.Sign(t.Context(), newStatement(t)); !errors.Is(err, broken) || !registry.HasCode(err, registry.CodeInternal) || bundle != nil {
		t.Errorf("bundle %s, error %v; want CodeInternal because %v", bundle, err, broken)
	}
	off := &ecdsa.PublicKey{Curve: elliptic.P256(), X: big.NewInt(1), Y: big.NewInt(1)} //nolint:staticcheck // a key that is none
	if _, err := signer.New(remote{off, nil}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("a point that is not on the curve: error %v, want CodeInvalid", err)
	}
}

// A verification that was stopped says nothing about the bundle.
func TestVerifyStopsWhenCancelled(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	trust := trustOnly(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, when := range []string{"before the key was read", "after the key was read"} {
		claim, err := trust.Verify(ended, bundle, resource)
		if !registry.HasCode(err, registry.CodeUnavailable) || !errors.Is(err, context.Canceled) || claim.Signer != "" {
			t.Errorf("%s: claim by %q, error %v; want CodeUnavailable", when, claim.Signer, err)
		}
		if _, err := trust.Verify(t.Context(), bundle, resource); err != nil {
			t.Fatal(err)
		}
	}
}

// The earliest retirement of a key counts, whatever the order of its entries.
func TestEarliestRetirementCounts(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	early, late := time.Unix(1_000, 0), time.Unix(2_000, 0)
	for _, times := range [][]time.Time{{early, late}, {late, early}, {early, early}} {
		var entries []trust.TrustEntry
		for _, at := range times {
			entries = append(entries, trust.TrustEntry{Key: "a.pub", Roles: evidence.Roles(),
				Resources: []string{"oci://local/"}, State: evidence.KeyRetired, RetiredAt: at})
		}
		claim, err := newTrust(t, files{"a.pub": s.PublicKeyPEM()}, entries...).Verify(t.Context(), bundle, resource)
		if err != nil || !claim.RetiredAt.Equal(early) {
			t.Errorf("retired %v: claim says %v, error %v; want %v", times, claim.RetiredAt, err, early)
		}
	}
}
