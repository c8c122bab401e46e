package s3_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/s3"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]s3.Config{
		"s3://models":                                       {Bucket: "models", Region: "us-east-1", Endpoint: "https://s3.us-east-1.amazonaws.com"},
		"s3://models/":                                      {Bucket: "models", Region: "us-east-1", Endpoint: "https://s3.us-east-1.amazonaws.com"},
		"s3://models/a/b?region=eu-west-1":                  {Bucket: "models", Prefix: "a/b", Region: "eu-west-1", Endpoint: "https://s3.eu-west-1.amazonaws.com"},
		"s3://models?endpoint=http://127.0.0.1:9000":        {Bucket: "models", Region: "us-east-1", Endpoint: "http://127.0.0.1:9000"},
		"s3://models?endpoint=https%3A%2F%2Fs3.test%2F":     {Bucket: "models", Region: "us-east-1", Endpoint: "https://s3.test"},
		"s3://m.o-dels/a_b/C.d?redirect=10m&region=r":       {Bucket: "m.o-dels", Prefix: "a_b/C.d", Region: "r", Endpoint: "https://s3.r.amazonaws.com", Redirect: 10 * time.Minute},
		"s3://models/a/?endpoint=https://s3.test:1&region=": {}, // refused
	} {
		got, err := s3.ParseURL(text)
		if want == (s3.Config{}) {
			wantCode(t, err, registry.CodeInvalid)
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                      "want s3://",
		"models":                                "want s3://",
		"/srv/models":                           "want s3://",
		"gs://models":                           "want s3://",
		"s3:models":                             "want s3://",
		"s3://models#x":                         "want s3://",
		"s3://%zz":                              "want s3://",
		"s3://":                                 "bucket",
		"s3://Models":                           "bucket",
		"s3://mo:1":                             "bucket",
		"s3://192.168.1.1":                      "bucket",
		"s3://models/../x":                      "prefix",
		"s3://models/a//b":                      "prefix",
		"s3://models/./b":                       "prefix",
		"s3://KEY:hunter2@models":               "a URL must not contain credentials",
		"s3://models?endpoint=s3.test":          "endpoint: want http",
		"s3://models?endpoint=ftp://s3.test":    "endpoint: want http",
		"s3://models?endpoint=http://":          "endpoint: want http",
		"s3://models?endpoint=http://s3.test/x": "endpoint: want http",
		"s3://models?endpoint=http://A:hunter2@s3.test": "endpoint: want http",
		"s3://models?redirect=yes":                      "redirect",
		"s3://models?redirect=0s":                       "redirect",
		"s3://models?redirect=1000h":                    "redirect",
		"s3://models?secret=hunter2":                    "option secret is unknown",
		"s3://models?region=a&region=b":                 "want one value",
		"s3://models?region=%zz":                        "escaped",
	} {
		_, err := s3.ParseURL(text)
		if registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", text, err, says)
		}
	}
	for _, text := range []string{
		"s3://KEY:hunter2@models", "s3://KEY:hunter2@models?region=%zz", "s3://KEY:hunter2%zz@models", "s3://models?secret=hunter2&x",
		"s3://models?endpoint=http://KEY:hunter2@s3.test", "s3://models?hunter2=%zz",
	} {
		if _, err := s3.ParseURL(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the secret: %v", text, err)
		}
	}
}

// FuzzParseURL: what is taken names a bucket and an endpoint; nothing of a user or a
// password gets into an error.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"s3://models/a?endpoint=http://127.0.0.1:1&region=r&redirect=1m", "s3://a:b@models", "s3://models/..", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := s3.ParseURL(text)
		if err != nil {
			wantCode(t, err, registry.CodeInvalid)
			return
		}
		if c.Bucket == "" || c.Region == "" || !strings.HasPrefix(c.Endpoint, "http") ||
			strings.Contains(c.Prefix, "..") && strings.Contains("/"+c.Prefix+"/", "/../") {
			t.Errorf("%q became %+v", text, c)
		}
		if again, err := s3.ParseURL(c.String() + "?region=" + c.Region); strings.IndexFunc(c.Prefix+c.Region, special) < 0 &&
			(err != nil || again.Bucket != c.Bucket || again.Prefix != c.Prefix) {
			t.Errorf("%q is written %s, which is read as %+v (%v)", text, c, again, err)
		}
	})
}

// special tells characters that a URL writes in another way.
func special(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r))
}

// What is wrong with a store is said when it is opened, with what to do about it.
func TestOpenRefuses(t *testing.T) { // not parallel: it changes the environment
	newPrefix(t)
	refuse := func(name, url string, says ...string) {
		t.Helper()
		config, err := s3.ParseURL(url)
		must(t, err)
		b, err := s3.Open(t.Context(), config)
		if b != nil || registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("%s: got %v, %v; want CodeUnavailable", name, b, err)
			return
		}
		text := strings.Join(append(registry.Hints(err), err.Error()), "\n")
		for _, part := range says {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q does not say %q", name, text, part)
			}
		}
		if strings.Contains(text, "a-secret") {
			t.Errorf("%s: %q has the secret", name, text)
		}
	}
	refuse("no bucket", "s3://no-such-bucket?endpoint="+shared.Endpoint, "bucket no-such-bucket does not exist")
	refuse("no server", "s3://models?endpoint=http://127.0.0.1:1", "does not respond")

	t.Setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-is-wrong")
	refuse("wrong secret", shared.URL("x"), "refuses this service", "AWS_ACCESS_KEY_ID")

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/") // rather than a machine's role
	refuse("no credentials", shared.URL("x"), "no credentials", "AWS_SHARED_CREDENTIALS_FILE")
}

// A URL that was given away is good for one blob, for reading, and for its time.
func TestRedirectExpires(t *testing.T) {
	t.Parallel()
	b := open(t, shared, newPrefix(t))
	d := put(t, b, "content")
	url, ok, err := b.Redirect(t.Context(), d, time.Second)
	if !ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	if got := status(t, http.MethodGet, url); got != 200 {
		t.Errorf("GET: got %d, want 200", got)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		if got := status(t, method, url); got != 403 {
			t.Errorf("%s: got %d, want 403", method, got)
		}
	}
	other := put(t, b, "other")
	if got := status(t, http.MethodGet, strings.Replace(url, d.Encoded()[:2]+"/"+d.Encoded(), other.Encoded()[:2]+"/"+other.Encoded(), 1)); got != 403 {
		t.Errorf("another blob: got %d, want 403", got)
	}
	for deadline := time.Now().Add(30 * time.Second); status(t, http.MethodGet, url) != 403; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the URL does not expire")
		}
	}
	_, _, err = b.Redirect(t.Context(), "sha256:x", time.Minute)
	wantCode(t, err, registry.CodeInvalid)
}

func status(t *testing.T, method, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, response.Body.Close())
	return response.StatusCode
}

func put(t *testing.T, b *s3.Bucket, content string) registry.Digest {
	t.Helper()
	d := digest.FromString(content)
	must(t, b.Put(t.Context(), d, int64(len(content)), strings.NewReader(content)))
	return d
}
