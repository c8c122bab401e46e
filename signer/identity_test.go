package signer_test

import (
	"crypto/elliptic"
	"maps"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/trust"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/signertest"
)

const github = "https://token.actions.githubusercontent.com"

// byIdentity trusts an identity in a role for everything in the registry.
func byIdentity(i trust.Identity, role evidence.Role) trust.TrustEntry {
	return trust.TrustEntry{Identity: &i, Roles: []evidence.Role{role}, Resources: []string{"oci://local/"}}
}

// visionBuilds are the builds of a repository by its permanent ID, by a workflow.
func visionBuilds() trust.Identity {
	return trust.Identity{Issuer: github, Claims: map[string]string{
		"repository_id": "456", "repository_owner_id": "123", "job_workflow_ref": "acme/ci/.github/workflows/build.yml@refs/heads/main",
		"environment": "production", "runner_environment": "github-hosted",
	}}
}

// rooted trusts entries by a sigstore root.
func rooted(t testing.TB, root []byte, entries ...trust.TrustEntry) *signer.Trust {
	t.Helper()
	return newTrust(t, files{"root.json": root}, entries...).WithRoots([]trust.Root{{Sigstore: "root.json"}})
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	root, entry := a.Root(t), byIdentity(visionBuilds(), evidence.RoleVerifier)
	claim, err := rooted(t, root, entry).Verify(t.Context(), a.Stamp(t, a.Sign(t, signertest.GitHub(), newStatement(t))).Bytes(t), resource)
	if err != nil {
		t.Fatal(err)
	}
	if claim.Signer != entry.String() || !claim.SignedAs(evidence.RoleVerifier) ||
		claim.SignedAs(evidence.RoleBuilder) || claim.Key != evidence.KeyTrusted {
		t.Errorf("got %+v, want a claim of %s as verifier", claim, entry)
	}
	if age := time.Since(claim.Stamped); age < -time.Minute || age > time.Minute {
		t.Errorf("stamped on %v, want now", claim.Stamped)
	}
}

// What an identity asks for must be in the certificate, character by character.
func TestIdentityMatches(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	root := a.Root(t)
	with := func(name, text string) trust.Identity {
		i := visionBuilds()
		i.Claims = maps.Clone(i.Claims)
		i.Claims[name] = text
		return i
	}
	sub := func(text string) trust.Identity { return trust.Identity{Issuer: github, Subject: text} }
	job := signertest.GitHub()
	person := signertest.Certificate{Issuer: "https://accounts.example.com", Email: "ana@example.com"}
	byID := func(issuer, ref string) trust.Identity { // whatever started the job; of one ref, if it is given
		i := trust.Identity{Issuer: issuer, Claims: map[string]string{"repository_id": "456"}}
		if ref != "" {
			i.Claims["ref"] = ref
		}
		return i
	}
	const gitlab, mergeRef, pullFile = "https://gitlab.com", "refs/merge-requests/7/head", "https://github.com/acme/ci/.github/workflows/build.yml@refs/pull/7/merge"
	lab, ofPull := job.With(signertest.Environment, ""), job.With(signertest.Trigger, "pull_request")
	lab.Issuer, ofPull.URI = gitlab, pullFile
	mergeRequest := lab.With(signertest.Ref, mergeRef)
	for name, c := range map[string]struct {
		signed signertest.Certificate
		asked  trust.Identity
		want   bool
	}{
		"all claims":                          {job, visionBuilds(), true},
		"another repository of the same name": {job.With(signertest.RepositoryID, "457"), visionBuilds(), false},
		"a longer ID":                         {job.With(signertest.RepositoryID, "4567"), visionBuilds(), false},
		"no ID":                               {job.With(signertest.RepositoryID, ""), visionBuilds(), false},
		"another owner":                       {job.With(signertest.OwnerID, "124"), visionBuilds(), false},
		"another workflow":                    {job.With(signertest.BuildSigner, "https://github.com/acme/vision/.github/workflows/build.yml@refs/heads/main"), visionBuilds(), false},
		"the workflow on a branch":            {job.With(signertest.BuildSigner, "https://github.com/acme/ci/.github/workflows/build.yml@refs/heads/main2"), visionBuilds(), false},
		"another environment":                 {job.With(signertest.Environment, "production2"), visionBuilds(), false},
		"no environment":                      {job.With(signertest.Environment, ""), visionBuilds(), false},
		"a runner of their own":               {job.With(signertest.RunnerEnvironment, "self-hosted"), visionBuilds(), false},
		"a claim that no certificate has":     {job, with("ref_protected", "true"), false},
		"an empty claim":                      {job, with("email", ""), false},
		"the name of the repository too":      {job, with("repository", "acme/vision"), true},
		"another name":                        {job, with("repository", "acme/vision2"), false},
		"a host in the name":                  {job.With(signertest.Repository, "https://github.com.evil.example/acme/vision"), with("repository", "github.com/acme/vision"), false},
		"the sub by names":                    {job, sub("repo:acme/vision:environment:production"), true},
		"the sub by IDs":                      {job, sub("repo:acme@123/vision@456:environment:production"), true},
		"the sub of another ID":               {job.With(signertest.RepositoryID, "457"), sub("repo:acme@123/vision@456:environment:production"), false},
		"the sub of a branch":                 {job.With(signertest.Environment, ""), sub("repo:acme/vision:ref:refs/heads/main"), true},
		"the sub of a pull request":           {job.With(signertest.Environment, "").With(signertest.Trigger, "pull_request"), sub("repo:acme/vision:pull_request"), true},
		"a pull request is no branch":         {job.With(signertest.Environment, "").With(signertest.Trigger, "pull_request"), sub("repo:acme/vision:ref:refs/heads/main"), false},
		"an environment that is missing":      {job.With(signertest.Environment, ""), with("environment", "production"), false},
		"the environment":                     {job, with("environment", "production"), true},
		"the sub of no environment":           {job.With(signertest.Environment, ""), sub("repo:acme/vision:environment:production"), false},
		"the sub of no environment, by IDs":   {job.With(signertest.Environment, ""), sub("repo:acme@123/vision@456:environment:production"), false},
		"an environment where a ref is asked": {job, sub("repo:acme/vision:ref:refs/heads/main"), false},
		"the sub of a branch, by IDs":         {job.With(signertest.Environment, ""), sub("repo:acme@123/vision@456:ref:refs/heads/main"), true},
		"the sub of a tag for a branch":       {job.With(signertest.Environment, "").With(signertest.Ref, "refs/tags/main"), sub("repo:acme@123/vision@456:ref:refs/heads/main"), false},
		"a pull request":                      {job.With(signertest.Trigger, "pull_request"), trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456"}}, false},
		"a pull request, of its base": {job.With(signertest.Trigger, "pull_request_target"),
			trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456", "ref": "refs/heads/main"}}, false},
		"what follows a pull request": {job.With(signertest.Trigger, "workflow_run"),
			trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456", "ref": "refs/heads/main"}}, false},
		"a pull request, its base by sub":  {job.With(signertest.Environment, "").With(signertest.Trigger, "pull_request_target"), sub("repo:acme/vision:ref:refs/heads/main"), false},
		"a pull request in an environment": {job.With(signertest.Trigger, "pull_request"), with("environment", "production"), true},
		"a pull request that is asked for": {job.With(signertest.Trigger, "pull_request").With(signertest.Ref, "refs/pull/7/merge"),
			trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456", "ref": "refs/pull/7/merge"}}, true},
		"nothing says what started it":      {job.With(signertest.Trigger, ""), trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456"}}, false},
		"a schedule":                        {job.With(signertest.Trigger, "schedule"), trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456"}}, true},
		"a push of a pull request's ref":    {job.With(signertest.Ref, "refs/pull/7/merge"), byID(github, ""), false},
		"a workflow of a pull request":      {ofPull, sub(pullFile), true},
		"a job of another forge":            {lab.With(signertest.Trigger, ""), byID(gitlab, ""), true},
		"a merge request":                   {lab.With(signertest.Trigger, "merge_request_event"), byID(gitlab, ""), false},
		"a merge request, by its ref alone": {mergeRequest.With(signertest.Trigger, ""), byID(gitlab, ""), false},
		"a merge request that is asked for": {mergeRequest.With(signertest.Trigger, "merge_request_event"), byID(gitlab, mergeRef), true},
		"a prefix of the sub":               {job, sub("repo:acme/vision:environment:prod"), false},
		"a longer sub":                      {job, sub("repo:acme/vision:environment:production:x"), false},
		"a colon in an environment":         {job.With(signertest.Environment, "production:x"), sub("repo:acme/vision:environment:production:x"), false},
		"an escaped colon":                  {job.With(signertest.Environment, "production:x"), sub("repo:acme/vision:environment:production%3Ax"), true},
		"the name in the certificate":       {job, sub("https://github.com/acme/ci/.github/workflows/build.yml@refs/heads/main"), true},
		"the sub at another issuer": {signertest.Certificate{Issuer: "https://gitlab.com", URI: job.URI, Extensions: job.Extensions},
			sub("repo:acme/vision:environment:production"), false},
		"an issuer with more": {signertest.Certificate{Issuer: github + "/acme", URI: job.URI, Extensions: job.Extensions}, visionBuilds(), false},
		"a person":            {person, trust.Identity{Issuer: person.Issuer, Subject: person.Email}, true},
		"a person by email":   {person, trust.Identity{Issuer: person.Issuer, Claims: map[string]string{"email": person.Email}}, true},
		"another person":      {signertest.Certificate{Issuer: person.Issuer, Email: "xana@example.com"}, trust.Identity{Issuer: person.Issuer, Subject: person.Email}, false},
		"the person at another issuer": {signertest.Certificate{Issuer: "https://other.example.com", Email: person.Email},
			trust.Identity{Issuer: person.Issuer, Subject: person.Email}, false},
		"everybody": {person, trust.Identity{Issuer: person.Issuer}, false},
		"nothing":   {person, trust.Identity{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bundle := a.Stamp(t, a.Sign(t, c.signed, newStatement(t))).Bytes(t)
			claim, err := rooted(t, root, byIdentity(c.asked, evidence.RoleVerifier)).Verify(t.Context(), bundle, resource)
			if !c.want {
				wantUntrusted(t, claim, err, "no trust entry has that identity")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// Attacks on bundles with certificates.
func TestIdentityRefuses(t *testing.T) {
	t.Parallel()
	a, other := signertest.New(t), signertest.New(t)
	job, statement := signertest.GitHub(), newStatement(t)
	good := func() signertest.Document { return a.Stamp(t, a.Sign(t, job, statement)) }
	changed := func(change func(signertest.Document)) signertest.Document {
		d := good()
		change(d)
		return d
	}
	hour := time.Now().Add(-time.Hour)
	expired, early, p384, two := job, job, job, job
	expired.NotBefore, expired.NotAfter = hour, hour.Add(10*time.Minute)
	early.NotBefore, early.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	p384.Curve = elliptic.P384()
	two.Email = "ana@example.com"
	nameless := job
	nameless.URI = ""
	for name, c := range map[string]struct {
		bundle signertest.Document
		says   string
	}{
		"of another authority":                  {other.Stamp(t, other.Sign(t, job, statement)), "threshold not met"},
		"of another authority, stamped by ours": {a.Stamp(t, other.Sign(t, job, statement)), "certificate"},
		"stamped by another authority":          {other.Stamp(t, a.Sign(t, job, statement)), "threshold not met"},
		"without a timestamp":                   {a.Sign(t, job, statement), "threshold not met"},
		"expired, without a timestamp":          {a.Sign(t, expired, statement), "threshold not met"},
		"stamped after it expired":              {a.Stamp(t, a.Sign(t, expired, statement)), "certificate"},
		"stamped before it began":               {a.Stamp(t, a.Sign(t, early, statement)), "certificate"},
		"another curve":                         {a.Stamp(t, a.Sign(t, p384, statement)), "want ECDSA P-256"},
		"two names":                             {a.Stamp(t, a.Sign(t, two, statement)), "2 names, want one"},
		"no name":                               {a.Stamp(t, a.Sign(t, nameless, statement)), ""},
		"no issuer":                             {a.Stamp(t, a.Sign(t, signertest.Certificate{Email: "ana@example.com"}, statement)), "names no issuer"},
		"the timestamp of another signature": {changed(func(d signertest.Document) {
			d.Material()["timestampVerificationData"] = good().Material()["timestampVerificationData"]
		}), "threshold not met"},
		"the certificate of another signature": {changed(func(d signertest.Document) { d.Material()["certificate"] = good().Material()["certificate"] }), "signature"},
		"the envelope of another statement":    {changed(func(d signertest.Document) { d["dsseEnvelope"].(map[string]any)["payload"] = []byte(`{}`) }), "signature"},
		"a key and a certificate":              {changed(func(d signertest.Document) { d.Material()["publicKey"] = map[string]any{"hint": "any"} }), "oneof"},
		"a chain of certificates": {changed(func(d signertest.Document) {
			d.Material()["x509CertificateChain"] = map[string]any{"certificates": []any{d.Material()["certificate"]}}
			delete(d.Material(), "certificate")
		}), "v0.3"},
		"a certificate and a chain": {changed(func(d signertest.Document) {
			d.Material()["x509CertificateChain"] = map[string]any{"certificates": []any{d.Material()["certificate"]}}
		}), "oneof"},
		"signed by a key, with its certificate": {changed(func(d signertest.Document) {
			d["dsseEnvelope"] = signertest.SignWith(t, newKey(t), statement)["dsseEnvelope"]
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trust := rooted(t, a.Root(t), byIdentity(visionBuilds(), evidence.RoleVerifier))
			claim, err := trust.Verify(t.Context(), c.bundle.Bytes(t), resource)
			wantUntrusted(t, claim, err, c.says)
		})
	}
	for name, root := range map[string][]byte{"not in the log of signatures": a.RootWithLog(t),
		"not in the log of certificates": a.RootWithCertificateLog(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim, err := rooted(t, root, byIdentity(visionBuilds(), evidence.RoleVerifier)).Verify(t.Context(), good().Bytes(t), resource)
			wantUntrusted(t, claim, err, "failed to verify")
		})
	}
	t.Run("no root", func(t *testing.T) {
		t.Parallel()
		claim, err := newTrust(t, files{}, byIdentity(visionBuilds(), evidence.RoleVerifier)).Verify(t.Context(), good().Bytes(t), resource)
		wantUntrusted(t, claim, err, "roots names no sigstore root")
	})
	t.Run("a root for timestamps alone", func(t *testing.T) {
		t.Parallel()
		trust := newTrust(t, files{"tsa.pem": a.StampChain(t)}, byIdentity(visionBuilds(),
			evidence.RoleVerifier)).WithRoots([]trust.Root{{Timestamps: "tsa.pem"}})
		claim, err := trust.Verify(t.Context(), good().Bytes(t), resource)
		wantUntrusted(t, claim, err, "roots names no sigstore root")
	})
	t.Run("a root that is gone", func(t *testing.T) {
		t.Parallel()
		trust := newTrust(t, files{}, byIdentity(visionBuilds(), evidence.RoleVerifier)).WithRoots([]trust.Root{{Sigstore: "root.json"}})
		if _, err := trust.Verify(t.Context(), good().Bytes(t), resource); !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("got %v, want CodeUnavailable: quarantines of identities would silently end", err)
		}
	})
	t.Run("another resource", func(t *testing.T) {
		t.Parallel()
		entry := byIdentity(visionBuilds(), evidence.RoleVerifier)
		entry.Resources = []string{"oci://local/staging/"}
		claim, err := rooted(t, a.Root(t), entry).Verify(t.Context(), good().Bytes(t), resource)
		wantUntrusted(t, claim, err, "is trusted for oci://local/staging/ and not for "+resource)
	})
}

// An identity is one signer whatever its certificates, and however many subjects an entry matches.
func TestIdentityIsOneSigner(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	narrow := byIdentity(visionBuilds(), evidence.RoleBuilder)
	wide := byIdentity(trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456"}}, evidence.RoleApprover)
	trust := rooted(t, a.Root(t), narrow, wide)
	signers := make(map[string]bool)
	for _, c := range []signertest.Certificate{signertest.GitHub(), signertest.GitHub(), signertest.GitHub().With(signertest.Environment, "other")} {
		claim, err := trust.Verify(t.Context(), a.Stamp(t, a.Sign(t, c, newStatement(t))).Bytes(t), resource)
		if err != nil {
			t.Fatal(err)
		}
		signers[claim.Signer] = true
		if both := claim.SignedAs(evidence.RoleBuilder) &&
			claim.SignedAs(evidence.RoleApprover); both != (c.Extensions[signertest.Environment] == "production") {
			t.Errorf("roles %v for environment %s", claim.Roles, c.Extensions[signertest.Environment])
		}
	}
	if len(signers) != 1 || !signers[wide.String()] {
		t.Errorf("got signers %v, want %s alone", signers, wide)
	}
}

// The worst state of any matching entry counts, and the window that is in all of them.
func TestIdentityStates(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	narrow := byIdentity(visionBuilds(), evidence.RoleBuilder)
	wide := byIdentity(trust.Identity{Issuer: github, Claims: map[string]string{"repository_id": "456"}}, evidence.RoleApprover)
	wide.State, wide.RevokedAt = evidence.KeyRevoked, time.Now()
	narrow.Window.Until = time.Now().Add(-time.Hour)
	claim, err := rooted(t, a.Root(t), narrow, wide).Verify(t.Context(), a.Stamp(t, a.Sign(t, signertest.GitHub(), newStatement(t))).Bytes(t), resource)
	if err != nil || claim.Key != evidence.KeyRevoked || !claim.Window.Equal(narrow.Window) || claim.Window.Contains(claim.Stamped) {
		t.Errorf("got %v, state %s, window %s, want the revoked one whose window ended", err, claim.Key, claim.Window)
	}
}

// A key's bundle has the time of its timestamp if the authority is trusted, and verifies in any case.
func TestStamped(t *testing.T) {
	t.Parallel()
	a, other := signertest.New(t), signertest.New(t)
	key := newKey(t)
	public := newSigner(t, key).PublicKeyPEM()
	entry := trust.TrustEntry{Key: "a.pub", Roles: evidence.Roles(), Resources: []string{"oci://local/"}}
	trustEntries := newTrust(t, files{"a.pub": public, "tsa.pem": a.StampChain(t)}, entry).WithRoots([]trust.Root{{Timestamps: "tsa.pem"}})
	bySigstore := newTrust(t, files{"a.pub": public, "root.json": a.Root(t)}, entry).WithRoots([]trust.Root{{Sigstore: "root.json"}})
	moved := signertest.SignWith(t, key, newStatement(t))
	moved.Material()["timestampVerificationData"] = a.Stamp(t, signertest.SignWith(t, key, newStatement(t))).Material()["timestampVerificationData"]
	for name, c := range map[string]struct {
		trust   *signer.Trust
		bundle  signertest.Document
		stamped bool
	}{
		"stamped":                     {trustEntries, a.Stamp(t, signertest.SignWith(t, key, newStatement(t))), true},
		"stamped, by a sigstore root": {bySigstore, a.Stamp(t, signertest.SignWith(t, key, newStatement(t))), true},
		"by another authority":        {trustEntries, other.Stamp(t, signertest.SignWith(t, key, newStatement(t))), false},
		"not stamped":                 {trustEntries, signertest.SignWith(t, key, newStatement(t)), false},
		"the stamp of another":        {trustEntries, moved, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim, err := c.trust.Verify(t.Context(), c.bundle.Bytes(t), resource)
			if err != nil || claim.Stamped.IsZero() == c.stamped {
				t.Errorf("got %v, stamped on %v, want one: %t", err, claim.Stamped, c.stamped)
			}
		})
	}
}

func TestCheckRoot(t *testing.T) {
	t.Parallel()
	a := signertest.New(t)
	chain := string(a.StampChain(t))
	_, withoutLeaf, _ := strings.Cut(chain, "-----END CERTIFICATE-----\n")
	const most = 256 << 10 // bytes
	padded := func(text string, size int) string { return text + strings.Repeat("\n", size-len(text)) }
	for name, c := range map[string]struct {
		root trust.Root
		data string
		ok   bool
	}{
		"a sigstore root":           {trust.Root{Sigstore: "r"}, string(a.Root(t)), true},
		"a chain":                   {trust.Root{Timestamps: "r"}, chain, true},
		"a chain as sigstore root":  {trust.Root{Sigstore: "r"}, chain, false},
		"a root as chain":           {trust.Root{Timestamps: "r"}, string(a.Root(t)), false},
		"nothing":                   {trust.Root{Timestamps: "r"}, "", false},
		"a large chain":             {trust.Root{Timestamps: "r"}, padded(chain, most), true},
		"a chain that is too large": {trust.Root{Timestamps: "r"}, padded(chain, most+1), false},
		"a large root":              {trust.Root{Sigstore: "r"}, padded(string(a.Root(t)), most), true},
		"a root that is too large":  {trust.Root{Sigstore: "r"}, padded(string(a.Root(t)), most+1), false},
		"an empty object":           {trust.Root{Sigstore: "r"}, "{}", false},
		"without its own":           {trust.Root{Timestamps: "r"}, withoutLeaf, false},
		"more after it":             {trust.Root{Timestamps: "r"}, chain + "x", false},
		"a key in it":               {trust.Root{Timestamps: "r"}, chain + "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", false},
		"no certificate in it":      {trust.Root{Timestamps: "r"}, chain + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false},
		"a key twice":               {trust.Root{Sigstore: "r"}, strings.Replace(string(a.Root(t)), "{", `{"mediaType":"x",`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := signer.CheckRoot(c.root, []byte(c.data))
			if (err == nil) != c.ok || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
				t.Errorf("got %v, want ok: %t", err, c.ok)
			}
		})
	}
}

// FuzzIdentity reads hostile bundles with certificates. What gives a claim gives the one that was signed.
func FuzzIdentity(f *testing.F) {
	a := signertest.New(f)
	trust := rooted(f, a.Root(f), byIdentity(visionBuilds(), evidence.RoleVerifier))
	bundle := a.Stamp(f, a.Sign(f, signertest.GitHub(), newStatement(f))).Bytes(f)
	want, err := trust.Verify(f.Context(), bundle, resource)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bundle)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{},"verificationMaterial":{"certificate":{"rawBytes":"MAA="}}}`))
	f.Add([]byte(strings.Replace(string(bundle), `"certificate"`, `"x509CertificateChain"`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) { sameOrNone(t, trust, data, want) })
}
