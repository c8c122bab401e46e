package signer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer"
)

const inToto = "application/vnd.in-toto+json"

// badStatements are payloads that are no statement, by what is wrong with them.
func badStatements() map[string]string {
	hex := strings.Repeat("ab", 32)
	subject := `"subject":[{"digest":{"sha256":"` + hex + `"}}]`
	head := `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://example.com/p",`
	return map[string]string{
		"empty":               ``,
		"no JSON":             `hello`,
		"array":               `[]`,
		"null":                `null`,
		"cut":                 head + subject,
		"trailing":            head + subject + `}{}`,
		"not UTF-8":           head + subject + ",\"x\":\"\xff\"}",
		"other type":          `{"_type":"https://in-toto.io/Statement/v2","predicateType":"p",` + subject + `}`,
		"no type":             `{"predicateType":"p",` + subject + `}`,
		"upper-case keys":     `{"_TYPE":"https://in-toto.io/Statement/v1","predicateType":"p",` + subject + `}`,
		"no predicate type":   `{"_type":"https://in-toto.io/Statement/v1",` + subject + `}`,
		"no subject":          head + `"subject":[]}`,
		"upper-case subject":  head + strings.Replace(subject, "subject", "Subject", 1) + `}`,
		"no digest":           head + `"subject":[{"name":"x"}]}`,
		"empty digest":        head + `"subject":[{"digest":{"sha256":""}}]}`,
		"short digest":        head + `"subject":[{"digest":{"sha256":"abcd"}}]}`,
		"upper-case digest":   head + `"subject":[{"digest":{"sha256":"` + strings.ToUpper(hex) + `"}}]}`,
		"digest number":       head + `"subject":[{"digest":{"sha256":7}}]}`,
		"subject object":      head + `"subject":{}}`,
		"two subjects keys":   head + subject + `,` + subject + `}`,
		"type in two cases":   `{"_type":"https://in-toto.io/Statement/v1","predicateType":"p","PredicateType":"q",` + subject + `}`,
		"digest in two cases": head + `"subject":[{"digest":{"sha256":"` + hex + `"},"Digest":{"sha256":"` + strings.Repeat("cd", 32) + `"}}]}`,
		"two keys inside":     head + subject + `,"predicate":{"verdict":"fail","verdict":"pass"}}`,
		"two escaped keys":    head + subject + `,"predicate":{"a":1,"\u0061":2}}`,
		"deep":                head + subject + `,"predicate":` + strings.Repeat(`[`, 99) + strings.Repeat(`]`, 99) + `}`,
		"many subjects":       head + `"subject":[` + strings.Repeat(`{},`, 1024) + `{}]}`,
	}
}

func TestSignedNonsenseIsNoClaim(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	trust := trustOnly(t, newSigner(t, key))
	for name, payload := range badStatements() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim, err := trust.Verify(t.Context(), forge(t, key, inToto, []byte(payload)).bytes(t), resource)
			wantUntrusted(t, claim, err)
		})
	}
}

// Store cosign attest writes the older _type, and cosign sign annotations in subjects.
func TestForeignStatements(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	trust := trustOnly(t, newSigner(t, key))
	old := strings.Replace(string(newStatement(t)), "Statement/v1", "Statement/v0.1", 1)
	annotated := strings.Replace(string(newStatement(t)), `"digest":`, `"annotations":{"k":"v"},"digest":`, 1)
	otherDigest := strings.Replace(string(newStatement(t)), `"sha256":`, `"gitTree":"x","sha256":`, 1)
	for _, payload := range []string{old, annotated, otherDigest} {
		claim, err := trust.Verify(t.Context(), forge(t, key, inToto, []byte(payload)).bytes(t), resource)
		if err != nil || !claim.Statement.About(engine) {
			t.Errorf("%s: claim %+v, error %v", payload, claim, err)
		}
	}
}

func TestRefusedBundles(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	trust := trustOnly(t, newSigner(t, key))
	change := func(edit func(d document, envelope map[string]any)) string {
		d := forge(t, key, inToto, newStatement(t))
		edit(d, d["dsseEnvelope"].(map[string]any))
		return string(d.bytes(t))
	}
	good := change(func(document, map[string]any) {})
	two := func(_ document, e map[string]any) { s := e["signatures"].([]any); e["signatures"] = append(s, s[0]) }
	for _, c := range []struct{ name, data, says string }{
		{"empty", "", "not JSON"},
		{"null", "null", "not a JSON object"},
		{"two documents", good + good, "something follows"},
		{"oversized", good + strings.Repeat(" ", signer.MaxBundle), "want at most 4194304"},
		{"deep", `{"a":` + strings.Repeat("[", 1<<20), "deeper than"},
		{"unknown key", strings.Replace(good, `{`, `{"x":1,`, 1), "unknown field"},
		{"key twice", strings.Replace(good, `{`, `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",`, 1), "twice"},
		{"key in both spellings", strings.Replace(good, `{`, `{"media_type":"application/vnd.dev.sigstore.bundle.v0.3+json",`, 1), "duplicate"},
		{"two signatures", change(two), "2 signatures, want exactly one"},
		{"no signature", change(func(_ document, e map[string]any) { e["signatures"] = []any{} }), "0 signatures"},
		{"key id", change(func(_ document, e map[string]any) { e["signatures"].([]any)[0].(map[string]any)["keyid"] = "k" }), "keyid"},
		{"null signature", change(func(_ document, e map[string]any) { e["signatures"] = []any{nil} }), "bundle"},
		{"old version", change(func(d document, _ map[string]any) {
			d["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.2"
		}), "v0.3"},
		{"no version", change(func(d document, _ map[string]any) { delete(d, "mediaType") }), "media"},
		{"no material", change(func(d document, _ map[string]any) { delete(d, "verificationMaterial") }), "verification material"},
		{"certificate", change(func(d document, _ map[string]any) {
			d["verificationMaterial"] = map[string]any{"certificate": map[string]any{"rawBytes": "AAAA"}}
		}), "certificate"},
		{"message signature", change(func(d document, _ map[string]any) {
			delete(d, "dsseEnvelope")
			d["messageSignature"] = map[string]any{"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": "AAAA"}, "signature": "AAAA"}
		}), "message signature"},
		{"both contents", change(func(d document, _ map[string]any) { d["messageSignature"] = map[string]any{} }), "oneof"},
		{"payload type changed", change(func(_ document, e map[string]any) { e["payloadType"] = "text/plain" }), "payload type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claim, err := trust.Verify(t.Context(), []byte(c.data), resource)
			wantUntrusted(t, claim, err, c.says)
			if len(err.Error()) > 1000 || strings.Contains(err.Error(), "\u00a0") {
				t.Errorf("error is not fit to print: %q", err)
			}
		})
	}
	if _, err := trust.Verify(t.Context(), []byte(good), resource); err != nil {
		t.Errorf("the bundle that the cases change: %v", err)
	}
}

// A payload that was signed as something else says nothing here, whatever it looks like.
func TestPayloadTypeIsSigned(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	d := forge(t, key, "application/json", newStatement(t))
	d["dsseEnvelope"].(map[string]any)["payloadType"] = inToto
	claim, err := trustOnly(t, newSigner(t, key)).Verify(t.Context(), d.bytes(t), resource)
	wantUntrusted(t, claim, err)
}

// Timestamps of a bundle that was made with an authority are not looked at: there is
// none whose key is trusted here.
func TestHarmlessExtras(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	d := forge(t, key, inToto, newStatement(t))
	d["verificationMaterial"].(map[string]any)["timestampVerificationData"] = map[string]any{
		"rfc3161Timestamps": []any{map[string]any{"signedTimestamp": "AAAA"}},
	}
	if _, err := trustOnly(t, newSigner(t, key)).Verify(t.Context(), d.bytes(t), resource); err != nil {
		t.Error(err)
	}
}

// Whatever happens to the bytes of a bundle, a claim repeats what was signed.
func TestChangedBytesChangeNoClaim(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t))
	trust := trustOnly(t, s)
	bundle, err := s.Sign(t.Context(), newStatement(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := trust.Verify(t.Context(), bundle, resource)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range bundle {
		for _, mask := range []byte{0x01, 0x20} {
			changed := bytes.Clone(bundle)
			changed[i] ^= mask
			if !sameOrNone(t, trust, changed, want) {
				refused++
			}
		}
	}
	if refused < len(bundle) {
		t.Errorf("only %d of %d changed bundles were refused", refused, 2*len(bundle))
	}
	rapid.Check(t, func(r *rapid.T) {
		from := rapid.IntRange(0, len(bundle)).Draw(r, "from")
		to := rapid.IntRange(from, len(bundle)).Draw(r, "to")
		insert := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(r, "insert")
		sameOrNone(r, trust, bytes.Join([][]byte{bundle[:from], insert, bundle[to:]}, nil), want)
	})
}

// sameOrNone reports whether a bundle verifies, and fails the test if it says
// anything but want.
func sameOrNone(t rapid.TB, trust *signer.Trust, bundle []byte, want evidence.Claim) bool {
	t.Helper()
	claim, err := trust.Verify(context.Background(), bundle, resource)
	switch {
	case err == nil && !reflect.DeepEqual(claim, want):
		t.Fatalf("bundle %s gave the claim %+v", bundle, claim)
	case err != nil && !registry.HasCode(err, registry.CodeTrust):
		t.Fatalf("bundle %s: error %v, want CodeTrust", bundle, err)
	}
	return err == nil
}

func FuzzVerify(f *testing.F) {
	key := newKey(f)
	s := newSigner(f, key)
	trust := trustOnly(f, s)
	bundle := forge(f, key, inToto, newStatement(f)).bytes(f)
	want, err := trust.Verify(context.Background(), bundle, resource)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bundle)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{},"verificationMaterial":{"publicKey":{}}}`))
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":null,"verificationMaterial":{"tlogEntries":[{}],"publicKey":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !sameOrNone(t, trust, data, want) {
			return
		}
		if !json.Valid(data) {
			t.Errorf("a claim from what is no JSON: %s", data)
		}
	})
}

// FuzzStatement reaches the statement decoder, behind a true signature.
func FuzzStatement(f *testing.F) {
	s := newSigner(f, newKey(f))
	trust := trustOnly(f, s)
	f.Add(newStatement(f))
	for _, bad := range badStatements() {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		bundle, err := s.Sign(context.Background(), data)
		if err != nil {
			return
		}
		claim, err := trust.Verify(context.Background(), bundle, resource)
		if err != nil {
			t.Fatalf("what was signed does not verify: %v", err)
		}
		var plain evidence.Statement
		if err := json.Unmarshal(data, &plain); err != nil {
			t.Fatalf("a claim from what is no statement: %v", err)
		}
		if len(claim.Statement.Subject) == 0 || claim.Statement.PredicateType == "" {
			t.Fatalf("an empty claim: %+v", claim)
		}
	})
}
