package registry_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
)

func TestParseReference(t *testing.T) {
	t.Parallel()
	d := digest.FromString("x")
	for text, want := range map[string]registry.Ref{
		"staging/digits":                         {Environment: "staging", Model: "digits"},
		"staging/vision/digits:1.0.0":            {Environment: "staging", Model: "vision/digits", Tag: "1.0.0"},
		"prod/a__b/c-d.e@" + string(d):           {Environment: "prod", Model: "a__b/c-d.e", Digest: d},
		"localhost/prod/m:current":               {Host: "localhost", Environment: "prod", Model: "m", Tag: "current"},
		"reg.example:5000/prod/m:1@" + string(d): {Host: "reg.example:5000", Environment: "prod", Model: "m", Tag: "1", Digest: d},
		"[::1]:5000/prod/m":                      {Host: "[::1]:5000", Environment: "prod", Model: "m"},
	} {
		got, err := registry.ParseRef(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, error %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                    "ENVIRONMENT/MODEL",
		"digits":                              "ENVIRONMENT/MODEL",
		"digits:1.0":                          "ENVIRONMENT/MODEL",
		"a.b/digits":                          "ENVIRONMENT/MODEL", // a.b is a host
		"/digits":                             "environment",
		"Staging/digits":                      "environment",
		"staging/":                            "model name",
		"staging/Digits":                      "model name",
		"staging//digits":                     "model name",
		"staging/a___b":                       "model name",
		"staging/../prod":                     "model name",
		"staging/sources":                     "reserved",
		"staging/digits/sources":              "reserved",
		"staging/digits:":                     "tag",
		":staging/digits":                     "tag",
		"staging/digits:-1":                   "tag",
		"staging/digits:a/b":                  "tag",
		"staging/digits@":                     "digest",
		"staging/digits@sha256:00":            "digest",
		"staging/digits@1.0.0":                "digest",
		"a b.c/staging/digits":                "host",
		"host:port/staging/digits":            "host",
		"h.o\n/staging/digits":                "host",
		"?x.y/staging/digits":                 "host",
		"staging/" + strings.Repeat("a", 256): "at most 255",
		"staging/digits:" + strings.Repeat("a", 129): "tag",
	} {
		_, err := registry.ParseRef(text)
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want CodeInvalid that says %q", text, err, says)
		}
	}
}

func TestReferenceRoundTrip(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[a-z0-9]{1,5}((\.|_|__|-{1,2})[a-z0-9]{1,3}){0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		want := registry.Ref{
			Host:        rapid.SampledFrom([]string{"", "localhost", "localhost:5000", "a.b", "127.0.0.1:1"}).Draw(t, "host"),
			Environment: rapid.StringMatching(`[a-z]{1,8}(-[0-9]{1,2})?`).Filter(func(s string) bool { return s != "localhost" }).Draw(t, "environment"),
			Model:       strings.Join(rapid.SliceOfN(name, 1, 3).Draw(t, "model"), "/"),
			Tag:         rapid.StringMatching(`([a-zA-Z0-9_][a-zA-Z0-9._-]{0,20})?`).Draw(t, "tag"),
		}
		if rapid.Bool().Draw(t, "with digest") {
			want.Digest = digest.FromString(want.Model)
		}
		if registry.ValidateModel(want.Model) != nil {
			t.Skip("the name is reserved")
		}
		got, err := registry.ParseRef(want.String())
		if err != nil || got != want {
			t.Fatalf("%s was read as %+v, error %v", want, got, err)
		}
		selects := want.Tag
		if want.Digest != "" {
			selects = string(want.Digest)
		}
		if got.TagOrDigest() != selects || got.Repository() != want.Environment+"/"+want.Model {
			t.Fatalf("%s selects %q in %s", want, got.TagOrDigest(), got.Repository())
		}
	})
}

func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{"staging/digits:1.0.0", "h:1/e/m@" + string(digest.FromString("x")), "a/b@c@d", ":/@", "localhost/a/b/sources:x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := registry.ParseRef(text)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatalf("error %v, want CodeInvalid", err)
			}
			return
		}
		if ref.String() != text {
			t.Fatalf("%q was read as %+v, which is written %q", text, ref, ref)
		}
		if strings.ContainsAny(text, " \t\r\n\\?#%") || strings.Contains(text, "..") && !strings.Contains(ref.Tag+ref.Host, "..") {
			t.Fatalf("%q was taken as a reference", text)
		}
		if err := registry.ValidateModel(ref.Model); err != nil {
			t.Fatalf("%q names a model that is none: %v", text, err)
		}
	})
}

func TestValidateVersion(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"0.0.0", "1.4.0", "2.0.0-rc.1", "1.0.0-alpha-b", "1.0.0-0a", "1.0.0-r", "1.0.0-rc2", "10.20.30"} {
		if err := registry.ValidateVersion(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3.4", "1.2.3+build", "1.2.3-", "1.2.3-01",
		"1.2.3-a..b", "1.2.3-r2", "1.2.3-rc.1-r2", "latest", "1.2.3 ", "1.2.3\n", "1.2.3-" + strings.Repeat("a", 64)} {
		if err := registry.ValidateVersion(bad); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%q: error %v, want CodeInvalid", bad, err)
		}
	}
}
