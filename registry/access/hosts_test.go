package access_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/access"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	local := access.Hosts{Names: []string{"registry.internal", "10.0.0.7"}}
	public := access.Hosts{
		Names: []string{"Registry.Example.com."}, Addresses: true,
		Also: func(name string) bool { return name == "also.example.com" },
	}
	for _, c := range []struct {
		host          string
		local, public bool
	}{
		{"127.0.0.1:5080", true, true}, {"127.9.9.9", true, true}, {"localhost", true, true}, {"LocalHost:1", true, true}, {"localhost.:80", true, true},
		{"[::1]:5080", true, true}, {"[::1]", true, true}, {"[::ffff:127.0.0.1]:80", true, true},
		{"registry.internal", true, false}, {"REGISTRY.internal:5080", true, false}, {"registry.internal.", true, false},
		{"10.0.0.7:5080", true, true}, {"10.0.0.8:5080", false, true}, {"[fd00::1]:5080", false, true}, {"0.0.0.0:5080", false, true},
		{"[::]:5080", false, true},
		{"registry.example.com", false, true}, {"registry.example.com:443", false, true}, {"also.example.com:443", false, true},
		{"", false, false}, {":5080", false, false}, {".", false, false}, {"evil.example", false, false}, {"evil.example:5080", false, false},
		{"127.0.0.1.evil.example", false, false}, {"localhost.evil.example:80", false, false}, {"evil.localhost", false, false},
		{"registry.internal.evil.example", false, false}, {"evil.registry.internal", false, false}, {"registry.internal@evil.example", false, false},
		{"0x7f.1", false, false}, {"127.1", false, false}, {"2130706433", false, false},
	} {
		if got := local.Known(c.host); got != c.local {
			t.Errorf("a service on loopback, host %q: got %t, want %t", c.host, got, c.local)
		}
		if got := public.Known(c.host); got != c.public {
			t.Errorf("a service in a network, host %q: got %t, want %t", c.host, got, c.public)
		}
	}
	for name, want := range map[string]bool{
		"registry.internal": true, "10.0.0.7": true, "fd00::1": true, "x": true, "a_b-c.d": true,
		"": false, "registry.internal:5080": false, "https://registry.internal": false, "*": false, "a b": false, "[fd00::1]": false,
	} {
		if got := access.ValidHost(name); got != want {
			t.Errorf("ValidHost(%q): got %t, want %t", name, got, want)
		}
	}
}
