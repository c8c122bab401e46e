// Package webhook delivers events to webhooks as the Standard Webhooks specification describes:
// signed, in order, at least once, with retries.
package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// maxURL bounds the length of a webhook's URL.
const maxURL = 2048

// CheckURL returns an error if a URL cannot be a webhook's. Unless private is set, the
// URL must be https and must not have an address of this machine or of a private network.
// Addresses behind a host name are checked at every connection. Errors: CodeInvalid.
func CheckURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL:
		return registry.Errorf(registry.CodeInvalid, "webhook URL %.80q: want an https URL of at most %d bytes", text, maxURL)
	case u.Scheme != "https" && !(private && u.Scheme == "http"), u.Opaque != "", u.Hostname() == "", u.User != nil, u.Fragment != "":
		return registry.Errorf(registry.CodeInvalid, "webhook URL %.80q: want https://HOST/PATH, without a user or fragment", text)
	}
	if address, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(address) {
		return registry.Errorf(registry.CodeInvalid,
			"webhook URL %.80q: %s is an address of this machine or of a private network: want a public address", text, address)
	}
	return nil
}

// special are blocks from the IANA special-purpose address registries that netip does not
// recognize: addresses that are not assigned to hosts on the internet, or that embed another
// address.
func special() []netip.Prefix {
	var all []netip.Prefix
	for block := range strings.FieldsSeq(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15
		198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16
		3fff::/20 5f00::/16 fec0::/10 ::/96`) {
		all = append(all, netip.MustParsePrefix(block))
	}
	return all
}

// public reports whether an address is a public internet address.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, block := range special() {
		if block.Contains(a) {
			return false
		}
	}
	return true
}

// dialTimeout bounds the time to connect.
const dialTimeout = 5 * time.Second

// newClient returns a client that connects only to public addresses, uses no proxy and follows
// no redirects.
func newClient(private bool) *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !private && !public(to.Addr()) {
			return registry.Errorf(registry.CodeInvalid,
				"%s is an address of this machine or of a private network, which is not allowed", address)
		}
		return nil
	}}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, MaxIdleConns: 100, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
	}
}
