//go:build cgo

package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/signer/signertest"
)

// failing ends a script where a helper of tests wants to end a test.
type failing struct {
	testing.TB
	ts *testscript.TestScript
}

func (f failing) Helper() {}

func (f failing) Fatal(args ...any) { f.ts.Fatalf("%v", args) }

// cmdCertify signs a statement about a digest as a job of GitHub Actions, with a certificate of the
// script's own authority, whose root it writes.
func cmdCertify(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 100)
	t := failing{ts: ts}
	kept := authorityOf(ts)
	statement, err := evidence.NewStatement(args[1], json.RawMessage(ts.ReadFile(args[3])),
		evidence.StatementSubject{Digest: evidence.NewDigestSet(registry.Digest(args[2]))})
	ts.Check(err)
	job, stamped := signertest.GitHub(), true
	for _, arg := range args[4:] {
		number, text, _ := strings.Cut(arg, "=")
		if arg == "no-stamp" {
			stamped = false
			continue
		}
		n, err := strconv.Atoi(number)
		ts.Check(err)
		job = job.With(n, text)
	}
	bundle := kept.Sign(t, job, statement)
	if stamped {
		bundle = kept.Stamp(t, bundle)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bundle.Bytes(t), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("root.json"), kept.Root(t), 0o644))
}

// authority is the certificate authority of a script, once it needs one.
type authority struct{ *signertest.Authority }

// authorityOf is the authority of the script.
func authorityOf(ts *testscript.TestScript) *authority {
	kept := ts.Value(authorityKey{}).(*authority)
	if kept.Authority == nil {
		kept.Authority = signertest.New(failing{ts: ts})
	}
	return kept
}

// cmdAuthority lets the authority of the script answer over HTTP, and writes its root. TSA is where it
// gives timestamps, and FULCIO where it gives certificates for ID_TOKEN. REGISTRY_TOKEN is of the same
// job, for a service. PERSON_TOKEN is that of a person, for certificates.
func cmdAuthority(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 0, 0)
	kept := authorityOf(ts)
	stamps := httptest.NewServer(kept.Stamps(nil))
	ts.Defer(stamps.Close)
	ts.Setenv("TSA", stamps.URL)
	fulcio := httptest.NewServer(kept.Fulcio(nil))
	ts.Defer(fulcio.Close)
	ts.Setenv("FULCIO", fulcio.URL)
	job := signertest.Job()
	job.Expiry = time.Now().Add(time.Hour).Unix()
	ts.Setenv("ID_TOKEN", kept.Token(failing{ts: ts}, job))
	job.Audience = "https://registry.example.com"
	ts.Setenv("REGISTRY_TOKEN", kept.Token(failing{ts: ts}, job))
	person := signertest.Claims{Issuer: "https://login.example.com", Subject: "u-17",
		Email: "ana@example.com", EmailVerified: true, Audience: "sigstore", Expiry: job.Expiry}
	ts.Setenv("PERSON_TOKEN", kept.Token(failing{ts: ts}, person))
	ts.Check(os.WriteFile(ts.MkAbs("root.json"), kept.Root(failing{ts: ts}), 0o644))
}
