package authority_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/authority"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// issues changes what an authority for certificates issues.
type issues = func(c *signertest.Certificate, key *ecdsa.PublicKey) *ecdsa.PublicKey

// keyless is a job that signs as an identity, and what surrounds it.
type keyless struct {
	authority *signertest.Authority
	signer    signer.Signer
	variables map[string]string
	asked     *atomic.Int32 // certificates
	now       *atomic.Int64 // how far the clock of the job is ahead, in nanoseconds
}

// newKeyless is a job with a good token, where change, fulcio and stamps are not something else.
func newKeyless(t *testing.T, change issues, fulcio, stamps http.Handler) keyless {
	t.Helper()
	k := keyless{signertest.New(t), nil, make(map[string]string), new(atomic.Int32), new(atomic.Int64)}
	k.variables["ID_TOKEN"] = k.authority.Token(t, signertest.Job())
	if fulcio == nil {
		fulcio = k.authority.Fulcio(change)
	}
	if stamps == nil {
		stamps = k.authority.Stamps(nil)
	}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.asked.Add(1)
		fulcio.ServeHTTP(w, r)
	})
	i := authority.Identity{Fulcio: serve(t, counted), Token: "variable:ID_TOKEN"}
	k.open(t, i, authority.Timestamps{URL: serve(t, stamps)})
	return k
}

func (k *keyless) open(t *testing.T, i authority.Identity, stamps authority.Timestamps) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "builder.identity")
	if err := os.WriteFile(path, []byte(i.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	root := k.authority.Root(t)
	if i.Rekor != "" {
		root = k.authority.RootWithLog(t)
	}
	k.signer, err = authority.Open(path, authority.Settings{
		Timestamps: stamps, Getenv: func(name string) string { return k.variables[name] },
		Roots: trusted(map[string][]byte{"root.json": root}, trust.Root{Sigstore: "root.json"}),
		Now:   func() time.Time { return time.Now().Add(time.Duration(k.now.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// trust trusts the job's repository and workflow in its environment.
func (k *keyless) trust(t *testing.T) *signer.Trust {
	t.Helper()
	entry := trust.TrustEntry{
		Identity: &trust.Identity{Issuer: signertest.Job().Issuer, Claims: map[string]string{
			"repository_id": "456", "job_workflow_ref": signertest.Job().JobWorkflowRef, "environment": "production",
		}},
		Roles: evidence.Roles(), Resources: []string{"oci://local/"},
	}
	trustEntries, err := signer.NewTrust([]trust.TrustEntry{entry}, func(string) ([]byte, error) { return k.authority.Root(t), nil })
	if err != nil {
		t.Fatal(err)
	}
	return trustEntries.WithRoots([]trust.Root{{Sigstore: "root.json"}})
}

// A job signs with one certificate until it is about to expire, and what it signs is trusted.
func TestIdentity(t *testing.T) {
	t.Parallel()
	k := newKeyless(t, nil, nil, nil)
	sign := func(certificates int32) {
		t.Helper()
		bundle, err := k.signer.Sign(t.Context(), statement(t))
		if err != nil {
			t.Fatal(err)
		}
		claim, err := k.trust(t).Verify(t.Context(), bundle, resource)
		if at, by := claim.Time(); err != nil || by != evidence.TimeStamped || time.Since(at) > time.Minute {
			t.Errorf("got %v, time %s by %q, want now by a timestamp", err, at, by)
		}
		if asked := k.asked.Load(); asked != certificates {
			t.Errorf("got %d certificates, want %d", asked, certificates)
		}
	}
	sign(1)
	sign(1)
	k.now.Store(int64(4 * time.Minute)) // of the five that are left
	sign(2)
	if k.signer.KeyID() != "" || k.signer.PublicKeyPEM() != nil {
		t.Error("an identity has a key of its own")
	}
	if _, err := k.signer.SignNote(t.Context(), "local", "local\n"); err == nil {
		t.Error("an identity signs notes")
	}
}

// What an authority gets wrong, and a token that is for another, are errors and no bundle. No error shows a token.
func TestIdentityRefused(t *testing.T) {
	t.Parallel()
	other := signertest.New(t)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*signertest.Claims)) func(*testing.T, *keyless) {
		return func(t *testing.T, k *keyless) {
			t.Helper()
			c := signertest.Job()
			change(&c)
			k.variables["ID_TOKEN"] = k.authority.Token(t, c)
		}
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no entry for "+r.Header.Get("Authorization"), http.StatusForbidden)
	})
	for name, c := range map[string]struct {
		prepare        func(*testing.T, *keyless)
		change         issues
		fulcio, stamps http.Handler
		code           registry.Code
		want           string
		asked          int32
	}{
		"no token": {prepare: func(_ *testing.T, k *keyless) { clear(k.variables) }, code: registry.CodeUnavailable, want: "the variable ID_TOKEN has no token"},
		"a token for another": {prepare: with(func(c *signertest.Claims) { c.Audience = "https://registry.example.com" }),
			code: registry.CodeUnavailable, want: `want one for "sigstore" alone`},
		"a token for another, too": {prepare: with(func(c *signertest.Claims) { c.Audience = []string{"sigstore", "registry"} }), code: registry.CodeUnavailable, want: "alone"},
		"a token for no one":       {prepare: with(func(c *signertest.Claims) { c.Audience = nil }), code: registry.CodeUnavailable, want: "alone"},
		"a token that expired":     {prepare: with(func(c *signertest.Claims) { c.Expiry = 1 }), code: registry.CodeUnavailable, want: "it expired on 1970"},
		"no JWT":                   {prepare: func(_ *testing.T, k *keyless) { k.variables["ID_TOKEN"] = "secret" }, code: registry.CodeUnavailable, want: "it is no JWT"},
		"a token of another issuer": {prepare: func(t *testing.T, k *keyless) { k.variables["ID_TOKEN"] = other.Token(t, signertest.Job()) },
			code: registry.CodeUnavailable, want: "answers 401", asked: 1},
		"a certificate by another": {fulcio: other.Fulcio(nil),
			prepare: func(t *testing.T, k *keyless) { k.variables["ID_TOKEN"] = other.Token(t, signertest.Job()) },
			code:    registry.CodeTrust, want: "the certificate is not by an authority that roots", asked: 1},
		"a certificate for another": {change: func(*signertest.Certificate, *ecdsa.PublicKey) *ecdsa.PublicKey { return &foreign.PublicKey },
			code: registry.CodeTrust, want: "not by the key of its certificate", asked: 1},
		"a certificate that expired": {change: from(-time.Hour), code: registry.CodeTrust, want: "the certificate is not by an authority", asked: 1},
		"a certificate of tomorrow":  {change: from(24 * time.Hour), code: registry.CodeTrust, want: "the certificate is not by an authority", asked: 1},
		"a certificate of no issuer": {change: func(c *signertest.Certificate, key *ecdsa.PublicKey) *ecdsa.PublicKey { c.Issuer = ""; return key },
			code: registry.CodeTrust, want: "the certificate", asked: 1},
		"a timestamp by another": {stamps: other.Stamps(nil), code: registry.CodeTrust, want: "the certificate is not by an authority", asked: 1},
		"a timestamp of another": {stamps: other.Stamps(otherSignature), code: registry.CodeTrust, want: "the certificate is not by an authority", asked: 1},
		"a busy authority": {fulcio: http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		}), code: registry.CodeUnavailable, want: "certificate authority", asked: 1},
		"an authority that is elsewhere": {fulcio: http.RedirectHandler("https://evil.example.com/", http.StatusPermanentRedirect),
			code: registry.CodeUnavailable, want: "redirects elsewhere", asked: 1},
		"an answer with the token": {fulcio: echo, code: registry.CodeUnavailable, want: "no entry for Bearer TOKEN", asked: 1},
		"no certificate": {fulcio: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }),
			code: registry.CodeUnavailable, want: "returned no certificates", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeyless(t, c.change, c.fulcio, c.stamps)
			if c.prepare != nil {
				c.prepare(t, &k)
			}
			bundle, err := k.signer.Sign(t.Context(), statement(t))
			if bundle != nil || !registry.HasCode(err, c.code) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %d bytes and %v, want none and %s: %s", len(bundle), err, c.code, c.want)
			}
			if asked := k.asked.Load(); asked != c.asked {
				t.Errorf("the token was sent %d times, want %d", asked, c.asked)
			}
			token := k.variables["ID_TOKEN"]
			if part := token[:min(len(token), 30)]; token != "" && strings.Contains(err.Error(), part) {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

// from is a certificate of ten minutes that begins then.
func from(d time.Duration) issues {
	return func(c *signertest.Certificate, key *ecdsa.PublicKey) *ecdsa.PublicKey {
		c.NotBefore, c.NotAfter = time.Now().Add(d), time.Now().Add(d+10*time.Minute)
		return key
	}
}

// Signatures are entered in a log, whose time is enough without a timestamp.
func TestRekor(t *testing.T) {
	t.Parallel()
	k := newKeyless(t, nil, nil, nil)
	fulcio := serve(t, k.authority.Fulcio(nil))
	for name, c := range map[string]struct {
		log    http.Handler
		stamps authority.Timestamps
		want   string
	}{
		"a log alone":           {k.authority.Rekor(nil), authority.Timestamps{}, ""},
		"a log and a timestamp": {k.authority.Rekor(nil), authority.Timestamps{URL: serve(t, k.authority.Stamps(nil))}, ""},
		"another log":           {signertest.New(t).Rekor(nil), authority.Timestamps{}, "the certificate is not by an authority"},
		"a log of another time": {k.authority.Rekor(func(at time.Time) time.Time { return at.Add(-time.Hour) }), authority.Timestamps{}, "the certificate is not by an authority"},
		"a log whose clock is not that of the timestamp": {
			k.authority.Rekor(func(at time.Time) time.Time { return at.Add(-time.Hour) }), authority.Timestamps{URL: serve(t, k.authority.Stamps(nil))},
			"the certificate is not by an authority",
		},
		"no log": {http.NotFoundHandler(), authority.Timestamps{}, "log of signatures 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := keyless{authority: k.authority, now: k.now, variables: k.variables}
			job.open(t, authority.Identity{Fulcio: fulcio, Token: "variable:ID_TOKEN", Rekor: serve(t, c.log)}, c.stamps)
			bundle, err := job.signer.Sign(t.Context(), statement(t))
			if (err == nil) != (c.want == "") || err != nil && (bundle != nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %d bytes and %v, want %q", len(bundle), err, c.want)
			}
		})
	}
}

// Tokens come from where the file says, and from nowhere else.
func TestTokens(t *testing.T) {
	t.Parallel()
	k := newKeyless(t, nil, nil, nil)
	fulcio, stamps := serve(t, k.authority.Fulcio(nil)), authority.Timestamps{URL: serve(t, k.authority.Stamps(nil))}
	github := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of the job" ||
			r.URL.Query().Get("audience") != "sigstore" || r.URL.Query().Get("api-version") != "2.0" {
			http.Error(w, "not for "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"count":1,"value":"` + k.variables["ID_TOKEN"] + `"}`))
	}))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(k.variables["ID_TOKEN"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, url, secret string
		want              string
	}{
		"a file":              {"file:" + file, "", "", ""},
		"no file":             {"file:" + file + "s", "", "", "no such file"},
		"GitHub":              {"github", github + "/token?api-version=2.0", "of the job", ""},
		"GitHub, another job": {"github", github + "/token?api-version=2.0", "of another", "answers 403 Forbidden: \"not for Bearer TOKEN\""},
		"no permission":       {"github", "", "", "this is no job of GitHub Actions that may ask for a token"},
		"GitHub in the clear": {"github", "http://token.example.com/", "of the job", "is not https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := keyless{authority: k.authority, now: k.now, variables: map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": c.url,
				"ACTIONS_ID_TOKEN_REQUEST_TOKEN": c.secret}}
			job.open(t, authority.Identity{Fulcio: fulcio, Token: c.from}, stamps)
			_, err := job.signer.Sign(t.Context(), statement(t))
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
				c.secret != "" && strings.Contains(err.Error(), c.secret)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoadIdentity(t *testing.T) {
	t.Parallel()
	good := authority.Identity{Fulcio: "https://fulcio.example.com", Token: "github"}
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"what it writes":       {good.Text(), ""},
		"all that it writes":   {authority.Identity{Fulcio: good.Fulcio, Token: "file:/run/token", Audience: "a: b", Rekor: "https://rekor.example.com"}.Text(), ""},
		"no certificates":      {"token: github\n", "fulcio"},
		"no token":             {"fulcio: https://fulcio.example.com\n", "token"},
		"the token itself":     {"fulcio: https://fulcio.example.com\ntoken: eyJhbGciOi.secret.x\n", "never the token itself"},
		"a file anywhere":      {"fulcio: https://fulcio.example.com\ntoken: file:token\n", "want the absolute path"},
		"a token in the clear": {"fulcio: http://fulcio.example.com\ntoken: github\n", "want https, because a token is sent there"},
		"a log that is no URL": {good.Text() + "rekor: rekor\n", "rekor: "},
		"another key":          {good.Text() + "issuer: x\n", `unknown key "issuer"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "builder.identity")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := authority.LoadIdentity(path)
			if (err == nil) != (c.want == "") || err != nil && (!registry.HasCode(err, registry.CodeInvalid) ||
				!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "builder.identity")
	if err := os.WriteFile(path, []byte(good.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(path, authority.Settings{}); !registry.HasCode(err, registry.CodeInvalid) ||
		!strings.Contains(err.Error(), "nothing would show") {
		t.Errorf("got %v, want CodeInvalid: nothing would show when it signed", err)
	}
}
