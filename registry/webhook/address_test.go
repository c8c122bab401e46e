package webhook_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/webhook"
)

func inside() []string {
	return []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "198.18.0.1", "192.0.2.1", "203.0.113.9",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[fd12::1]", "[ff02::1]", "[fec0::1]",
		"[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001:db8::1]", "[2001::1]",
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, host := range inside() {
		if err := webhook.CheckURL("https://"+host+":8443/hook", false); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: %v, want CodeInvalid", host, err)
		}
		if err := webhook.CheckURL("http://"+host+"/hook", true); err != nil {
			t.Errorf("%s, where that is allowed: %v", host, err)
		}
	}
	for _, text := range []string{"https://example.com", "https://example.com/hook?token=x",
		"https://1.1.1.1/", "https://[2606:4700:4700::1111]/", "https://8.8.8.8:8443/x"} {
		if err := webhook.CheckURL(text, false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "example.com", "http://example.com", "https://", "https://user:pw@example.com", "https://example.com#x",
		"ftp://example.com", "https:example.com", "https://%zz", "file:///etc/passwd", "https://example.com/" + strings.Repeat("x", 2048)} {
		if err := webhook.CheckURL(text, false); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: %v, want CodeInvalid", text, err)
		}
	}
}

// A name that leads inside is refused when it is dialed, whatever it was when it was
// registered, and so are addresses that got past.
func TestNothingInsideIsCalled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	port := w.url[strings.LastIndex(w.url, ":"):]
	w.config.PrivateUnsafe = false
	w.register(t, "name", func(h *storage.Webhook) { h.URL = "http://localhost" + port })
	w.register(t, "address", nil)
	w.register(t, "mapped", func(h *storage.Webhook) { h.URL = "http://[::ffff:127.0.0.1]" + port })
	w.happen(t, "prod", history.EventPromote)
	if got := w.round(t, w.deliverer(t)); len(got) != 0 {
		t.Errorf("%d requests arrive", len(got))
	}
	for _, id := range []string{"name", "address", "mapped"} {
		if state := w.state(t, id); state.Attempts != 1 ||
			!strings.Contains(state.LastError, "which is not allowed") || strings.Contains(state.LastError, "/hook") {
			t.Errorf("%s: %+v", id, state)
		}
	}
}

// A redirect leads nowhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.answer = func(int) int { return http.StatusTemporaryRedirect }
	w.register(t, "h", nil)
	w.happen(t, "prod", history.EventPromote)
	if got := w.round(t, w.deliverer(t)); len(got) != 1 || w.state(t, "h").Attempts != 1 {
		t.Errorf("%d requests", len(got))
	}
}

// Whatever passes is https to a host, and no literal address of ours.
func FuzzCheckURL(f *testing.F) {
	for _, host := range inside() {
		f.Add("https://" + host + "/x")
	}
	f.Add("https://example.com:443/hook")
	f.Fuzz(func(t *testing.T, text string) {
		err := webhook.CheckURL(text, false)
		if err != nil {
			if registry.CodeOf(err) != registry.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			t.Fatalf("%q passes: %v", text, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.IsLoopback() || a.IsPrivate() ||
			a.IsLinkLocalUnicast() || a.Unmap().IsLoopback() || a.Unmap().IsPrivate()) {
			t.Fatalf("%q passes", text)
		}
	})
}
