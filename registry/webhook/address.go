// Package webhook tells the addresses that were registered of events, as Standard
// Webhooks describes it: signed, in order, at least once, for as long as it takes.
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

// maxURL bounds the address of a webhook.
const maxURL = 2048

// CheckURL refuses what cannot be the address of a webhook. Unless private says so it
// must be https, and not an address of this machine or network; what a name leads to is
// looked at each time that it is dialed. Errors: CodeInvalid.
func CheckURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL:
		return registry.Errorf(registry.CodeInvalid, "webhook URL %.80q: want an https URL of at most %d bytes", text, maxURL)
	case u.Scheme != "https" && !(private && u.Scheme == "http"), u.Opaque != "", u.Hostname() == "", u.User != nil, u.Fragment != "":
		return registry.Errorf(registry.CodeInvalid, "webhook URL %.80q: want https://HOST/PATH, without a user or fragment", text)
	}
	if address, err := netip.ParseAddr(u.Hostname()); err == nil && !private && !public(address) {
		return registry.Errorf(registry.CodeInvalid, "webhook URL %.80q: %s is an address of this machine or network, which is not called", text, address)
	}
	return nil
}

// special are the blocks of the IANA special-purpose address registries that are not
// somebody's on the internet, or that hide another address, as far as netip does not know
// them.
func special() []netip.Prefix {
	var all []netip.Prefix
	for block := range strings.FieldsSeq(`0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15
		198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16
		3fff::/20 5f00::/16 fec0::/10 ::/96`) {
		all = append(all, netip.MustParsePrefix(block))
	}
	return all
}

// public reports whether an address is one that anybody on the internet may have.
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

// dialTimeout bounds how long it may take to reach an address.
const dialTimeout = 5 * time.Second

// newClient makes a client that calls only public addresses, whatever a name leads to,
// by no proxy, and follows nowhere.
func newClient(private bool) *http.Client {
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !private && !public(to.Addr()) {
			return registry.Errorf(registry.CodeInvalid, "%s is an address of this machine or network, which is not called", address)
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
