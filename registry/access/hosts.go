package access

import (
	"net"
	"net/netip"
	"strings"
)

// Hosts are the names of a service. They protect against DNS rebinding: a web page can point
// its own domain to the service, and the browser then treats both as one site. The Host header
// still has the name of the page. The zero Hosts accepts only loopback names.
type Hosts struct {
	Names []string // host names and addresses, without ports
	// Addresses accepts every IP address; addresses cannot be rebound. Do not set it for a service
	// on loopback: a request with another address came through a proxy.
	Addresses bool
	Also      func(name string) bool // accepts more names, such as those of a TLS certificate; may be nil
}

// Known reports whether a Host header, HOST[:PORT], has a name of the service.
func (h Hosts) Known(host string) bool {
	name := hostName(host)
	if name == "" {
		return false
	}
	if ip, err := netip.ParseAddr(name); err == nil && (h.Addresses || ip.Unmap().IsLoopback()) {
		return true
	}
	if name == "localhost" {
		return true
	}
	for _, known := range h.Names {
		if hostName(known) == name {
			return true
		}
	}
	return h.Also != nil && h.Also(name)
}

// ValidHost reports whether a text is a host name or an IP address, without a port.
func ValidHost(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// hostName is the host of HOST[:PORT] in the form in which names are compared: in lower case and
// without the final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
