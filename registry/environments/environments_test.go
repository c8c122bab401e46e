package environments_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/environments"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

const trustYAML = "trust:\n  - {key: keys/local.pub, roles: [builder], resources: [\"oci://local/\"]}\n"

// aHost is what messages want of a host.
const aHost = "HOST[:PORT] as at the start of refs, with a '.' or a port, no scheme and no path: registry.example.com"

// The default compares releases, bounds every precision, and asks for cases. It has one key, so that the first build is all that
// it needs.
func TestLoadDefault(t *testing.T) {
	t.Parallel()
	got, err := environments.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Environments{
		Registry: "local",
		List: []policy.Environment{
			{Name: "staging"},
			{Name: "prod", From: "staging", Require: []string{"signature", "provenance", "parity", "recorded-cases", "no-looser", "compatible-interface"},
				Reports: policy.ReportRule{Cases: 20}, Ceilings: got.List[1].Ceilings},
		},
		Trust: []trust.TrustEntry{{Key: "keys/local.pub",
			Roles:     []evidence.Role{evidence.RoleBuilder, evidence.RoleVerifier, evidence.RoleApprover, evidence.RolePromoter},
			Resources: []string{"oci://local/"}}},
		Digest: digest.FromBytes(environments.Default()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, precision := range []string{"fp32", "bf16", "fp16", "fp8", "int8", "int4"} {
		if c := got.List[1].Ceilings[precision]; c["maxError"] <= 0 || c["snrDb"] <= 0 || c["equal"] < 0.5 || c["top1"] < 0.5 {
			t.Errorf("%s: the ceilings are %v, want them on max_error, snr, equal and top1", precision, c)
		}
	}
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library := digest.FromString("library")
	data := "registry: acme\nenvironments:\n  z-dev:\n  canary: {from: z-dev, registry: localhost}\n  a-prod: {from: canary, require: [parity, recorded-cases], registry: registry.example.com:5000, operators: [\"" + string(library) + "\"]}\n" + trustYAML
	if err := os.WriteFile(filepath.Join(dir, environments.File), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := environments.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Environment{
		{Name: "z-dev"},
		{Name: "canary", From: "z-dev", Require: policy.DefaultRequire(), Registry: "localhost"},
		{Name: "a-prod", From: "canary", Require: []string{"parity", "recorded-cases"}, Registry: "registry.example.com:5000", Operators: []registry.Digest{library}},
	}
	if diff := cmp.Diff(want, got.List); diff != "" {
		t.Error(diff)
	}
	if got.Registry != "acme" || got.Digest != digest.FromString(data) {
		t.Errorf("registry %q, digest %s", got.Registry, got.Digest)
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	head := "registry: local\nenvironments:\n  staging: {}\n"
	entry := func(s string) string { return head + "trust:\n  - " + s + "\n" }
	for _, c := range []struct{ text, want string }{
		{"", "1:1 found nothing: want a mapping with the keys version, registry, environments, trust, roots"},
		{"registry: local\n" + trustYAML, `1:1 key "environments" is missing`},
		{head, `1:1 key "trust" is missing`},
		{"registry: Local\nenvironments: {staging: {}}\n" + trustYAML, `1:11 registry "Local": want a lower-case name`},
		{"registry: local\nenvironments: {}\n" + trustYAML, "2:15 environments: want at least one, the first without from"},
		{"registry: local\nenvironments: [staging]\n" + trustYAML, "2:15 environments is a list: want a mapping from name to from and require"},
		{"registry: local\nenvironments:\n  prod: {from: staging}\n" + trustYAML, "3:3 environments: want at least one, the first without from"},
		{head + "  prod: {from: stagin}\n" + trustYAML, `4:3 environment prod: from "stagin" is not the name of an environment above it`},
		{head + "  prod: {from: staging, require: []}\n" + trustYAML,
			"4:34 environment prod: require is empty, which would ask for nothing: remove the key for the default [signature provenance parity]"},
		{head + "  prod: {form: staging}\n" + trustYAML,
			`4:10 unknown key "form" (did you mean "from"?): want from, require, registry, operators, accuracy, ceilings, ci-job, approvals, reports, coverage, served, freeze, break-glass`},
		{head + "  prod: {require: [parity]}\n" + trustYAML, "4:3 environment prod: require has no effect without from, since builds write it directly"},
		{head + "  prod: {operators: [\"" + string(digest.FromString("")) + "\"]}\n" + trustYAML, "4:3 environment prod: operators has no effect without from, since builds write it directly"},
		{head + "  prod: {from: staging, operators: [liboperators.so]}\n" + trustYAML, `4:37 want a digest in quotes, "sha256:" and 64 hexadecimal digits; for a library it is what sha256sum prints`},
		{head + "  prod: {from: staging, operators: [" + string(digest.FromString("")) + "]}\n" + trustYAML, `4:37 want a digest in quotes, "sha256:" and 64 hexadecimal digits; for a library it is what sha256sum prints`},
		{head + "  prod: {from: staging, operators: all}\n" + trustYAML, `4:36 found a single value: want a list of digests`},
		{head + "  prod: {from: staging, operators: ['" + string(digest.FromString("")) + "', '" + string(digest.FromString("")) + "']}\n" + trustYAML,
			"4:3 environment prod: operators: " + string(digest.FromString("")) + " is listed twice"},
		{head + "  staging: {}\n" + trustYAML, `4:3 key "staging" is here twice: the first is in line 3`},
		{head + "  prod: {from: staging, registry: \"\"}\n" + trustYAML, `4:35 registry "": want ` + aHost},
		{head + "  prod: {from: staging, registry: https://a.example}\n" + trustYAML, `4:35 registry "https://a.example": want ` + aHost},
		{head + "  prod: {from: staging, registry: [a.example]}\n" + trustYAML, `4:35 registry is a list: want HOST[:PORT]`},
		{head + "  a/b: {}\n" + trustYAML, `4:3 environment "a/b": want a lower-case name without '/'`},
		{head + "trust: []\n", "4:8 trust is empty: want at least one key, because no signature can be verified without a key"},
		{entry(`{key: "", roles: [builder], resources: ["oci://local/"]}`), "5:11 key is empty: want the path of a public key in PEM"},
		{entry(`{roles: [builder], resources: ["oci://local/"]}`), `5:5 key "key" is missing`},
		{entry(`{key: k, roles: [bilder], resources: ["oci://local/"]}`),
			`5:22 unknown role "bilder" (did you mean "builder"?): want one of builder, verifier, approver, promoter, attester, publisher`},
		{entry(`{key: k, roles: [builder, builder], resources: ["oci://local/"]}`), `5:31 role "builder" is here twice`},
		{entry(`{key: k, roles: [], resources: ["oci://local/"]}`), "5:21 roles is empty: want some of builder, verifier, approver, promoter, attester, publisher"},
		{entry(`{key: k, roles: [builder], resources: []}`), `5:43 resources is empty: want prefixes such as "oci://local/"`},
		{entry(`{key: k, roles: [builder], resources: [local/, "oci://"]}`), `5:44 resource "local/": want oci:// and the name of a registry, for example "oci://local/"
5:52 resource "oci://": want oci:// and the name of a registry, for example "oci://local/"`},
	} {
		_, err := environments.Parse("environments.yaml", []byte(c.text))
		if diff := cmp.Diff(c.want, problems(t, err)); diff != "" {
			t.Errorf("%s\n%s", c.text, diff)
		}
	}
}

// What no environment can leave out cannot be asked for by name either.
func TestOperatorsIsNoRequirement(t *testing.T) {
	t.Parallel()
	_, err := environments.Parse("e.yaml",
		[]byte("registry: local\nenvironments:\n  staging: {}\n  prod: {from: staging, require: [operators]}\n"+trustYAML))
	if got := problems(t, err); !strings.HasPrefix(got, `4:3 environment prod: requirement "operators": want one of signature, `) {
		t.Errorf("got %s", got)
	}
}

func TestUnknownRequirement(t *testing.T) {
	t.Parallel()
	_, err := environments.Parse("e.yaml", []byte("registry: local\nenvironments:\n  staging: {}\n  prod: {from: staging, require: [party]}\n"+trustYAML))
	if got := problems(t, err); !strings.HasPrefix(got, `4:3 environment prod: requirement "party": want one of signature, `) {
		t.Errorf("got %s", got)
	}
}

// problems lists what an error holds, a line for each.
func problems(t *testing.T, err error) string {
	t.Helper()
	var all *strictyaml.Error
	if !errors.As(err, &all) || registry.CodeOf(err) != registry.CodeInvalid {
		t.Fatalf("error %v (%T): want CodeInvalid around *strictyaml.Error", err, err)
	}
	var lines []string
	for _, p := range all.Problems {
		lines = append(lines, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message))
	}
	return strings.Join(lines, "\n")
}

func TestLoadTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "trust.yaml")
	if _, err := environments.LoadTrust(path); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{
		"registry: acme\n" + trustYAML: "",
		"registry: ACME\n" + trustYAML: `1:11 registry "ACME": want a lower-case name`,
		trustYAML:                      `1:1 key "registry" is missing`,
		"registry: acme\nenvironments: {a: {}}\n" + trustYAML:  `2:1 unknown key "environments": want version, registry, trust, roots, follow`,
		"registry: acme\ntrust: [{key: k, resources: [\"\"]}]": `2:9 key "roles" is missing`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := environments.LoadTrust(path)
		if want != "" {
			if diff := cmp.Diff(want, problems(t, err)); diff != "" {
				t.Errorf("%s\n%s", text, diff)
			}
			continue
		}
		if err != nil || got.Registry != "acme" || len(got.Entries) != 1 || got.Dir != dir || got.Digest != digest.FromString(text) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, environments.File), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := environments.Load(dir); registry.CodeOf(err) != registry.CodeInvalid {
		t.Errorf("a directory for a file: %v", err)
	}
}

func TestKeyPath(t *testing.T) {
	t.Parallel()
	if got := environments.KeyPath("data", "keys/a.pub"); got != filepath.Join("data", "keys", "a.pub") {
		t.Error(got)
	}
	absolute := filepath.Join(t.TempDir(), "a.pub")
	if got := environments.KeyPath("data", absolute); got != absolute {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(environments.Default())
	f.Add([]byte("registry: a\nenvironments: {x: , y: {from: x}}\n" + trustYAML))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		if es, err := environments.Parse("e.yaml", data); err == nil && es.Validate() != nil {
			t.Errorf("read what is not valid: %v", es.Validate())
		}
	})
}
