package serving

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

func TestListenConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    ListenConfig
		says string // empty: it is good
	}{
		"loopback":             {ListenConfig{Listen: "127.0.0.1:0"}, ""},
		"loopback, version 6":  {ListenConfig{Listen: "[::1]:0"}, ""},
		"TLS":                  {ListenConfig{Listen: ":443", TLSCert: "c", TLSKey: "k"}, ""},
		"behind a proxy":       {ListenConfig{Listen: "10.0.0.1:80", InsecureHTTP: true, URL: "https://registry.example.com/"}, ""},
		"in the clear":         {ListenConfig{Listen: "0.0.0.0:80"}, "others reach this address"},
		"all addresses":        {ListenConfig{Listen: ":80", Auth: true}, "others reach this address"},
		"a name":               {ListenConfig{Listen: "registry.example.com:80"}, "others reach this address"},
		"a proxy of no name":   {ListenConfig{Listen: ":80", InsecureHTTP: true}, "--url is missing"},
		"half of TLS":          {ListenConfig{Listen: ":443", TLSCert: "c"}, "want both, or none"},
		"the other half":       {ListenConfig{Listen: "127.0.0.1:0", TLSKey: "k"}, "want both, or none"},
		"no such port":         {ListenConfig{Listen: "127.0.0.1:99999"}, "want HOST:PORT"},
		"no port":              {ListenConfig{Listen: "127.0.0.1"}, "want HOST:PORT"},
		"other names":          {ListenConfig{Listen: "127.0.0.1:0", hosts: "registry.internal, 10.0.0.7,fd00::1"}, ""},
		"a name with a port":   {ListenConfig{Listen: "127.0.0.1:0", hosts: "registry.internal:5080"}, "--hosts: \"registry.internal:5080\": want names or addresses without ports"},
		"a pattern of names":   {ListenConfig{Listen: "127.0.0.1:0", hosts: "*"}, "--hosts"},
		"a URL with a path":    {ListenConfig{Listen: "127.0.0.1:0", URL: "https://registry.example.com/x"}, "--url"},
		"a URL without scheme": {ListenConfig{Listen: "127.0.0.1:0", URL: "registry.example.com"}, "--url"},
	} {
		err := c.e.check()
		if c.says == "" && err != nil || c.says != "" && (registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", name, err, c.says)
		}
	}
}

func TestStrictTransport(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{"": false, "http://registry.example.com": false, "https://registry.example.com": true} {
		if e := (ListenConfig{URL: url}); e.strictTransport() != want {
			t.Errorf("%q: %t", url, !want)
		}
	}
}

// A service without a key that opens tells its operator when it starts.
func TestServiceTriesItsKey(t *testing.T) {
	t.Parallel()
	good := t.TempDir()
	if _, err := keyfile.Generate(good, signer.LocalKey, nil); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{good: "", t.TempDir(): "there is no key"} {
		var log bytes.Buffer
		at := wiring.Location{Keys: dir, Getenv: func(string) string { return "" }}
		sv := &Service{Process: &Process{logger: slog.New(slog.NewTextHandler(&log, nil))}, at: at, keys: at.Keyring()}
		sv.files(t.Context())
		if says == "" && log.Len() > 0 || !strings.Contains(log.String(), says) {
			t.Errorf("the log has %q, want %q", log.String(), says)
		}
	}
}
